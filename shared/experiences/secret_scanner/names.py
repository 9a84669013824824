"""Names of secrets, and the parts of patterns between a name and its value."""

from __future__ import annotations

from typing import Final

PASSWORD: Final = (
    r"pass[-_ ]?(?:word|wd|phrase|code)s?|\bpass|[_-]pass|\bpwd|[_a-z]pwd|\bp/?w|_pw|_psw|\bpsk|[-_]psk|\b(?:sta|ap|wpa|wi-?fi)psk|\b(?:wpa[23]?|wi-?fi|wlan)[-_ ]?(?:psk|key)|\b(?:pass|mk|pw)[ \t](?:wi-?fi|server|root|admin|vps|db|mail|camera|modem|router)(?:[ \t][a-zà-ỹ-]{1,12}){0,3}?|(?:wi-?fi|wlan|mqtt|ota|sta|ssid|ap|user|admin|root|db|database|login|mail|smtp|ftp|proxy|router|client|server|my)pass|key_?material|\bmk|mật khẩu(?:[ \t][a-zà-ỹ-]{1,12}){0,4}?|mat[-_ ]?khau|"
    r"密码|口令|暗号|パスワード|비밀번호|암호|รหัสผ่าน|"
    r"(?:mot de passe|contrase[nñ]a|\bsenha|passwort|kennwort|wachtwoord|lösenord|\bhasł[oa]|парол[ья]|kata sandi|şifre)(?:[ \t][^\s\d:=\"'`]{1,20}){0,2}?"
)
SECRET: Final = (
    r"secrets?|tokens?|credentials?|api[-_. ]?keys?|(?:access|secret|private|auth|account|functions?|subscription|instrumentation|server|host|openai|azure|application|shared|client|app|signing|"
    r"encryption|encrypt|master|license|service|admin|storage|webhook|cookie|deploy|bot|crypto|aes|hmac|jwt|ssh|root|nwks?|apps|session)"
    r"[-_. ]?keys?|shared[-_]?access[-_]?key|appsecret|_auth|\bauth|[-_]salt|\bjwt|bearer|(?:\b|_)[pl]mk|"
    r"khoá (?:api|bí mật)|khóa (?:api|bí mật)|mã bí mật|密钥|秘钥|令牌|私钥"
)
SESSION: Final = (
    r"(?:php|j|asp)?sess(?:ion)?[-_]?(?:id|token|key)?|connect\.sid|\bsid|auth[-_]?cookie|csrf[-_]?token|"
    r"asp\.net_sessionid|remember[-_]?(?:me|token)"
)
SUFFIX: Final = (
    r"(?:[-_.]?(?:value|base|prod|production|dev|staging|live|test|old|new|key|id|string|hex|b64|base64|main|admin|user|"
    r"root|db|[0-9]{1,3})){0,2}"
)
GAP: Final = r"[ \t]{0,8}"
TYPE: Final = r"(?:[ \t]?:[ \t]?[A-Za-z_&][\w.<>\[\]|? ]{0,30})?"
WHOSE: Final = r"(?:[ \t](?:for|of|to|on|in|của|cho|trên)[ \t](?:(?:the|our|my)[ \t])?[\w\p{Latin}.-]+)?"
EQUALS: Final = rf"""(?:\[\w{{0,20}}\])?["'`\]\)}}*\\]{{0,4}}{WHOSE}(?:[ \t]\([^()\n]{{1,24}}\))?{TYPE}{GAP}(?::=|=>|[=!]?={{1,2}}|::?|\?=)"""
COPULA: Final = (
    rf"{WHOSE}(?:,[^,\n]{{1,30}},)?{GAP}"
    r"(?:(?:here |now |still |currently |đang |hiện )?"
    r"(?:(?:(?:is|was|are|were|has|had|got)[ \t])?(?:been[ \t])?(?:set|changed|reset|switched|updated|rotated)[ \t]to|used[ \t]to[ \t]be|reads|"
    r"(?:is|was|are)[ \t](?:still|now|currently|always|just|simply|again|back[ \t]to)|equals|is|was|are|là|as|to|of|with|thành|sang|bằng|est|ist|lautet|es|é|è|jest|adalah|—|–)[ \t:]|[はがを]|[은는이가]|"
    r"(?:就|曾|曾经|原来|以前|之前|现在|一直)?(?:是|为|為|叫)|(?:改成|改为|设为|设置为|设成|换成|重置为|用的是)了?)[ \t:]{0,3}"
)
QUOTED: Final = r"""(?:[rbufRBUF]{1,2}|@|L)?\\?["'`]([^"'`\\\n])"""
IN_QUOTES: Final = r"""[^"'`\\\n]"""
BARE: Final = r"""([^\s"'`<>,;&|(){}\[\]\\]{4})"""
WITHOUT_QUOTES: Final = r"""[^\s"'`<>,;&|(){}\[\]\\]"""
ARGUMENT: Final = r"[^\s'\"]"
BASE64: Final = "[A-Za-z0-9_+/=.~-]"
ACCOUNT: Final = (
    r"tài khoản|tai khoan|\btk\b|accounts?\b|\blog[- ]?in\b|\busers?\b|\busername\b|credentials?\b|đăng nhập|dang nhap|"
    r"账号|帐号|账户|用户名?|登录|\b(?:admin|administrator|root|sa|postgres|oracle|operator|pi)\b"
)
