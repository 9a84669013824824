"""Passwords in command lines, SQL statements and the files of command line tools."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.names import ARGUMENT, IN_QUOTES
from shared.experiences.secret_scanner.rules import SecretRule
from shared.experiences.secret_scanner.values import is_literal, is_password, is_token

COMMANDS: Final = (
    SecretRule("password", r"(?i)\bidentified[ \t]+(?:with[ \t]+[\"'\w]+[ \t]+)?(?:by|as)[ \t]+(?:password[ \t]+)?[\"'`]?([^\s\"'`;]{3})", lambda c: is_literal(c) and (c.lead[-1] in "\"'`" or bool(re.search(r"\d", c.value))), r"[^\s\"'`;]"),
    SecretRule("password", r"(?i)\bpassword(?:[ \t]+|[ \t]*(?:\(|=)|[ \t]+for[^=\n]{1,60}=)[ \t]*(?:password\()?'([^'\n]{3})", is_literal, r"[^'\n]"),
    SecretRule("password", r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]*? -p['\"]?([^\s'\"-][^\s'\"]{2})", is_literal, ARGUMENT),
    SecretRule("password", r"\bjdbc:oracle:\w+:[\w.-]+/([^\s@/:]{3,80})@", is_literal),
    SecretRule("password", r"\bsqlplus[ \t]+(?:-\w+[ \t]+)*[\w.]+/([^\s@/]{3,80})", is_literal),
    SecretRule("password", r"\b(?:htpasswd|mosquitto_passwd)(?:[ \t]+-\w+)*?[ \t]+-\w*b\w*(?:[ \t]+-\w+)*[ \t]+[^\s-]\S*[ \t]+\S+[ \t]+['\"]?([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"\b(?:smbclient|rpcclient|smbmap|net)\b[^\n]*? -U[ \t]?['\"]?[^\s%]+%([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"\bsshpass[ \t]+-p[ \t]?['\"]?([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"\b(?:docker|podman|az|oc|helm|mongo\w*|psql|rabbitmqadmin)\b[^\n]*? (?:-p|-P|-w|--pw)[ \t=]{1,2}['\"]?([^\s'\"-][^\s'\"]{2})", lambda c: is_literal(c) and not re.fullmatch(r"[\d.:/a-z]{1,12}(?::\d+)*(?:/tcp)?|\d+|[\w./-]*/[\w./-]*", c.value), ARGUMENT),
    SecretRule("password", r"\bredis-cli\b[^\n]*? (?:-a|--pass)[ \t]+['\"]?([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"\bcurl\b[^\n]*? (?:-u|--user|--proxy-user)[ \t=]?['\"]?[^\s:'\"]+:([^\s'\"]{1,3})", is_literal, ARGUMENT),
    SecretRule("password", r"(?i)(?:^|[\s\"'`])--?(?:\w{1,20}-)?(?:password|passwd|passphrase|pass|pwd)(?:=|[ \t]+)['\"]?([^\s'\"<>\[\]()-][^\s'\"<>\[\]()]{3})", lambda c: is_password(c) and bool(re.search(r"[^a-z-]", c.value)) and not re.match(r"\W+$", c.value), ARGUMENT),
    SecretRule("secret", r"(?i)(?:^|[\s\"'`])--?(?:\w{1,20}-)?(?:token|secret|api-?key|auth-?token|access-?key)(?:=|[ \t]+)['\"]?([^\s'\"<>]{8})", is_token, ARGUMENT),
    SecretRule("secret", r"\b(?:(?:wandb|vault|railway|huggingface-cli)[ \t]+login|(?:snyk|infracost|circleci)[ \t]+(?:auth|setup)|ngrok[ \t]+(?:config[ \t]+add-)?authtoken|cloudflared[ \t]+service[ \t]+install)[ \t]+(?:--\w+[ \t=])?['\"]?([^\s'\"<>-]{16})", is_token, ARGUMENT),
    SecretRule("password", r"(?i)-pass(?:in|out)?[ \t]+['\"]?pass:([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"(?i)\bmachine[ \t]+\S+\s+login[ \t]+\S+\s+password[ \t]+(\S{3})", is_literal, r"\S"),
    SecretRule("password", r"(?i)\becho[ \t]+(?:-n[ \t]+)?['\"]?([^\s'\"|]{4,80})['\"]?[ \t]*\|[ \t]*(?:sudo[ \t]+-S|docker login|passwd|chpasswd|kinit|gh auth|cryptsetup)", is_literal),
    SecretRule("password", r"(?i)ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?['\"]([^'\"\n$]{3})", is_literal, IN_QUOTES),
    SecretRule("password", r"(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w.*-]+:[\w.-]+:([^\s:]{3})", is_literal, r"[^\s:]"),
    SecretRule("password", r"(?im)\bnet[ \t]+user[ \t]+\S+[ \t]+([^\s/]{4,100})[ \t]*(?:/add|$)", is_literal),
    SecretRule("password", r"\b(?:ldap\w+\b[^\n]*? -w|(?:sqlcmd|bcp|unzip|zip|ipmitool)\b[^\n]*? -P|beeline\b[^\n]*? -p|(?:plink|pscp|putty)\b[^\n]*? -pw|snmp\w+\b[^\n]*? -[AX]|mosquitto_(?:pub|sub|rr)\b[^\n]*? (?:-P|--pw))[ \t=]{1,2}['\"]?([^\s'\"-][^\s'\"]{2})", is_literal, ARGUMENT),
    SecretRule("password", r"\b(?:7z[ar]?|rar|unrar)\b[^\n]*? -p['\"]?([^\s'\"-][^\s'\"]{2})", is_literal, ARGUMENT),
    SecretRule("password", r"\b(?:xfreerdp|wfreerdp)\b[^\n]*? /p:['\"]?([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"(?i)\bnet[ \t]+use\b[^\n]*?/user:\S+[ \t]+([^\s/]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"-(?:src|dest)?(?:store|key)pass[ \t]+['\"]?([^\s'\"-][^\s'\"]{2})", is_literal, ARGUMENT),
)  # fmt: skip
