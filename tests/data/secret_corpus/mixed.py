"""A hundred labelled texts of all classes, written without a look at the rules: each is (class, text)."""

from __future__ import annotations

import json
from typing import Final

from tests.data.secret_corpus.drawing import (
    base64_of,
    digits,
    framed,
    hexadecimal,
    key_bytes,
    key_lines,
    random_text,
    url_base64,
    uuid,
)
from tests.data.secret_corpus.national import (
    aadhaar,
    cpf,
    korean,
    pesel,
    singaporean,
    spanish,
    taiwanese,
    thai,
)

_RSA: Final = framed("RSA PRIVATE KEY", key_lines())
_EC: Final = framed("EC PRIVATE KEY", key_lines("MHcCAQEEI", 110))
_PKCS8: Final = framed("PRIVATE KEY", key_lines("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"))
_PGP: Final = framed("PGP PRIVATE KEY BLOCK", ["", *key_lines("lQVYBF", 700), "=" + random_text(4)])
_PUBLIC: Final = framed("PUBLIC KEY", key_lines("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA", 250))
_CERTIFICATE: Final = framed("CERTIFICATE", key_lines("MIIDazCCAlOgAwIBAgIU", 600))


def _prefixed(prefix: str, lines: list[str]) -> str:
    return "\n".join(f"{prefix}{line}" for line in lines)


_EC_KEY: Final = {"kty": "EC", "crv": "P-256", "x": url_base64(32), "y": url_base64(32)}
_RSA_KEY: Final = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": uuid(), "n": url_base64(256), "e": "AQAB"}

MIXED_UNSAFE: Final = [
    ("key", "Hà wrote:\n" + _prefixed(">> ", _EC)),
    ("key", _prefixed("worker-2  | ", _RSA)),
    ("key", _prefixed("Jan 03 10:11:12 build01 deploy[2121]: ", _PKCS8)),
    ("key", "\n".join(f"2026-03-01T10:11:{n:02}.1234567Z {line}" for n, line in enumerate(_RSA))),
    ("key", _prefixed("// ", _PKCS8)),
    ("key", "--- a/deploy.pem\n+++ /dev/null\n" + _prefixed("-", _RSA)),
    ("key", "\n".join(f"certs/server.key:{n}:{line}" for n, line in enumerate(_PKCS8, 1))),
    ("key", "| file | content |\n|---|---|\n| id_rsa | " + "<br>".join(_RSA) + " |"),
    ("key", "The key file lost its first line:\n" + "\n".join(_RSA[1:])),
    (
        "key",
        "\n".join(
            [
                "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
                *key_lines("P2/56wAAA"),
                "---- END SSH2 ENCRYPTED PRIVATE KEY ----",
            ]
        ),
    ),
    ("key", _prefixed("[pod/api-7c9/app] ", _PGP)),
    ("jwk", json.dumps({"d": url_base64(32)} | _EC_KEY, separators=(",", ":"))),
    ("jwk", json.dumps({"kty": "OKP", "crv": "Ed25519", "x": url_base64(32), "d": url_base64(32)}, indent=2)),
    ("jwk", json.dumps({"keys": [_RSA_KEY | {"d": url_base64(256), "p": url_base64(128), "q": url_base64(128)}]})),
    ("jwk", f"JWK.from_dict({{'k': '{url_base64(32)}', 'alg': 'HS256', 'kty': 'oct'}})"),
    ("firmware", 'WiFi.begin("NhaMinh", "hoahong2019");'),
    ("firmware", 'WiFi.softAP("GreenHouse-AP", "tomato88");'),
    ("firmware", '#define WIFI_PASSWORD "banhmi79"'),
    ("firmware", 'CONFIG_EXAMPLE_WIFI_PASSWORD="lotus1987"'),
    ("firmware", "sta.connect('Home-2G', 'tulip2020')  # MicroPython"),
    ("firmware", 'client.username_pw_set("greenhouse", password="daisy77x")'),
    ("firmware", "nmcli dev wifi connect Home password sunny1985"),
    ("firmware", "mosquitto_passwd -b /etc/mosquitto/passwd kitchen orange-tree9"),
    ("firmware", f"static const u1_t PROGMEM NWKSKEY[16] = {{ {key_bytes(16)} }};"),
    ("firmware", f"uint8_t aesKey[32] = {{\n  {key_bytes(16)},\n  {key_bytes(16)} }};"),
    ("firmware", 'mqtt.connect("esp32-bep", "sensor", "rose1987")'),
    ("vendor", f"NVIDIA's console gave me nvapi-{random_text(64)} and it fails"),
    ("vendor", f"I pasted jina_{random_text(60)} into the box"),
    ("vendor", f"the sandbox key e2b_{hexadecimal(40)} was refused"),
    ("vendor", f"curl https://open.larksuite.com/open-apis/bot/v2/hook/{uuid()}"),
    ("vendor", f"https://hooks.zapier.com/hooks/catch/{digits(8)}/{random_text(7).lower()}/"),
    ("vendor", f"POST https://sctapi.ftqq.com/SCT{digits(6)}T{random_text(26)}.send"),
    ("vendor", f"钉钉机器人加签 SEC{hexadecimal(64)}"),
    ("prose", "You can sign in to the NAS with user backup and password marigold-42-river."),
    ("prose", 'I log in with the password "Tangerine77" and get 403'),
    ("prose", "credentials are deploy:violet-Horse9 for the staging box"),
    ("prose", "admin pass is sunflower22, please fix"),
    ("prose", "đăng nhập bằng tài khoản quantri mật khẩu Hoacuc@88"),
    ("prose", "Tên đăng nhập: kythuat, mật khẩu: saigon1975"),
    ("prose", "路由器管理员密码（Lianhua@66）登录后报错"),
    ("prose", "帐密 admin Meihua2019 可以登录"),
    ("national", f"cliente com CPF {cpf()} recebeu erro 500"),
    ("national", f"Aadhaar no: {aadhaar()}"),
    ("national", f"주민등록번호 {korean()} 입력 시 오류"),
    ("national", f"El DNI del cliente es {spanish()}"),
    ("national", f"NIE: {spanish('Y')}"),
    ("national", f'{{"nric": "{singaporean()}"}}'),
    ("national", f"PESEL klienta: {pesel()}"),
    ("national", f"身分證字號 {taiwanese('A')} 查無資料"),
    ("national", f"เลขประจำตัวประชาชน {thai()}"),
]

MIXED_SAFE: Final = [
    ("address", "the gateway 10.20.0.1 answers, 192.168.50.14 does not"),
    ("address", "pod IP 172.20.3.18 and node 100.72.14.9 (Tailscale)"),
    ("address", "mDNS to 239.192.0.7 and broadcast to 255.255.255.255"),
    ("address", "nameserver 9.9.9.9\nnameserver 149.112.112.112"),
    ("address", "把 DNS 改成 223.5.5.5 或 119.29.29.29 即可"),
    ("address", "đổi DNS sang 1.0.0.1 và 208.67.222.222"),
    ("address", "resolver 2620:fe::fe and 2001:4860:4860::8844"),
    ("address", "fd00:10:96::a is the cluster's DNS; ff02::fb is multicast"),
    ("address", "benchmark net 198.18.0.5, AMT 192.88.99.1, class E 240.1.2.3"),
    ("mail", "From: no-reply@notify.acme.io"),
    ("mail", "Co-authored-by: bot <41898282+acme-bot@users.noreply.github.com>"),
    ("mail", "donotreply@shop.acme.vn gửi thư xác nhận"),
    ("mail", "Author: CI <noreply@gitlab.acme.dev>"),
    ("version", "downgrade to scipy 1.11.4.2 and opencv-python 4.9.0.80"),
    ("version", "gói libtorch 2.1.0.7 lỗi, pandas==2.2.0.1 chạy được"),
    ("version", "Could not load System.Memory, Version=4.0.1.1, Culture=neutral, PublicKeyToken=cc7b13ffcd2ddd51"),
    ("testnumber", "4000 0025 0000 3155 asks for 3-D Secure in test mode"),
    ("testnumber", "use 5555555555554444 and 3566002020360505 in the sandbox"),
    ("testnumber", "Twilio's magic number +15005550009 fails as it should"),
    ("testnumber", "the payment maker documents 2223000048400011 for the new range"),
    ("reference", "DB_PASSWORD_ARN=arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop/prod/db-x1Y2z3"),
    ("reference", "password: arn:aws:ssm:ap-southeast-1:123456789012:parameter/shop/prod/db-password"),
    ("reference", "ApiKey=@Microsoft.KeyVault(SecretUri=https://shop-kv.vault.azure.net/secrets/ApiKey/)"),
    ("reference", "DB_PASSWORD: vault:secret/data/shop/db#password"),
    ("reference", "api_key: op://Engineering/OpenAI/credential"),
    ("reference", "password: ${{ secrets.PROD_DB_PASSWORD }}\ntoken: $(DEPLOY_TOKEN)"),
    ("reference", "env:\n- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: shop-db, key: password}"),
    ("reference", "password: '{{resolve:secretsmanager:shop/db:SecretString:password}}'"),
    ("cipher", f"kind: SealedSecret\nspec:\n  encryptedData:\n    password: AgB{base64_of(300)}"),
    ("cipher", f"password: ENC[AES256_GCM,data:{base64_of(12)},iv:{base64_of(32)},tag:{base64_of(16)},type:str]"),
    ("cipher", f"db_password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  {hexadecimal(80)}\n  {hexadecimal(80)}"),
    ("default", "postgresql://postgres:postgres@127.0.0.1:5432/shop_test"),
    ("default", "amqp://guest:guest@rabbitmq:5672/"),
    ("default", "environment:\n  POSTGRES_USER: postgres\n  POSTGRES_PASSWORD: postgres"),
    ("public", json.dumps(_EC_KEY | {"kid": "2026-01", "use": "sig"})),
    ("public", json.dumps({"keys": [_RSA_KEY]}, indent=2)),
    ("public", _prefixed("> ", _PUBLIC)),
    ("public", _prefixed("web-1  | ", _CERTIFICATE)),
    ("firmware", 'WiFi.begin(ssid, password);\nclient.connect("esp32-01", mqttUser, mqttPass);'),
    ("firmware", '#define WIFI_PASS "your-wifi-password"\n#define WIFI_PASS_MAX 63'),
    ("firmware", f"static const uint8_t logo_bitmap[16] = {{ {key_bytes(16)} }};"),
    ("firmware", "static const u1_t APPKEY[16] = { " + ", ".join(["0x00"] * 16) + " };"),
    ("firmware", 'WiFi.begin("YOUR_SSID", "YOUR_PASSWORD");\nwlan.connect("ssid", "key")'),
    ("prose", "The admin pass is printed on the label; log in with the password from the vault."),
    ("prose", "Credentials are stored hashed: bcrypt for users, argon2 for admins."),
    ("prose", "密码（必填）与帐号不能相同，请先修改管理员密码"),
    ("prose", "Đăng nhập bằng mật khẩu mặc định rồi đổi ngay lần đầu"),
    ("national", "validate the CPF 111.111.111-11 and the DNI 12345678A as invalid"),
    ("national", f"build {digits(2)}4419{digits(5)}1 took 12 s; PESEL has eleven digits, NRIC nine characters"),
    ("national", "the Aadhaar API returns 1234 5678 9012 as a sample; RRN 000000-0000000 is refused"),
]
