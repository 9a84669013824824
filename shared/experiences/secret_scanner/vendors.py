"""Keys and tokens in the formats of their vendors, recognised by their prefixes."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.placeholders import is_random, is_sample
from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_HEX: Final = "[0-9a-f]"
_UUID: Final = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_W: Final = "[A-Za-z0-9_-]"
_A: Final = "[A-Za-z0-9]"

_FORMATS: Final = (
    ("AWS access key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("Amazon Bedrock API key", rf"(?:ABSK|bedrock-api-key-){_A}[A-Za-z0-9+/=]{{30}}"),
    ("Kho key or token", rf"kho_{_HEX}{{16}}_{_HEX}{{40}}|kho[acr]_{_W}{{2,171}}\.{_HEX}{{16}}\.{_W}{{20}}"),
    ("GitHub token", rf"gh[pousr]_{_A}{{20}}|github_pat_[A-Za-z0-9_]{{30}}"),
    ("GitLab token", rf"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|imt|agent|oas|ffct|wt)-[A-Za-z0-9_.-]{{18}}|GR1348941{_W}{{18}}"),
    ("Bitbucket or Atlassian token", rf"AT(?:ATT3|BB|CTT3){_W}{{20}}"),
    ("Slack token", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10}|xapp-\d-[A-Za-z0-9-]{20}"),
    ("Slack webhook", rf"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/({_A}+/{_A}+/[A-Za-z0-9/]{{10}})"),
    ("Microsoft Teams webhook", rf"webhook\.office\.com/webhookb2/({_UUID}@[A-Za-z0-9/@-]{{30}})"),
    ("Stripe key", rf"(?:sk|rk)_(?:live|test|prod)_{_A}{{10}}|whsec_[A-Za-z0-9+/=]{{20}}"),
    ("Anthropic API key", rf"sk-ant-[a-z0-9]{{2,12}}-{_W}{{20}}"),
    ("OpenAI API key", rf"sk-(?:proj|svcacct|admin|service|None)-{_W}{{20}}|sk-{_W}{{0,80}}T3BlbkFJ{_W}{{10}}"),
    ("API key", rf"sk-(?:[a-z]{{2,8}}-(?:v\d-)?)?{_W}{{20}}"),
    ("Google API key", rf"AIza{_W}{{30}}"),
    ("Google OAuth secret", rf"GOCSPX-{_W}{{20}}|ya29\.{_W}{{20}}|\b1//0{_W}{{30}}|AQ\.Ab{_W}{{30}}"),
    ("Firebase server key", rf"AAAA{_W}{{7}}:APA91b{_W}{{60}}"),
    ("Azure secret", rf"[A-Za-z0-9_~.]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{30}}|{_A}{{50,80}}(?:JQQJ9|AZDO)[A-Za-z0-9]{{3}}"),
    ("Azure storage key", r"[A-Za-z0-9+/]{86}=="),
    ("Twilio key", rf"(?:SK|AC){_HEX}{{32}}\b"),
    ("SendGrid API key", rf"SG\.{_W}{{16,32}}\.{_W}{{16}}"),
    ("Mailgun API key", rf"key-{_HEX}{{32}}\b|{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}\b"),
    ("Mailchimp API key", rf"{_HEX}{{32}}-us\d{{1,2}}\b"),
    ("Brevo API key", rf"xkeysib-{_HEX}{{64}}-{_A}{{16}}"),
    ("Resend API key", rf"re_{_A}{{6,12}}_{_A}{{16}}"),
    ("npm token", rf"npm_{_A}{{30}}"),
    ("PyPI token", rf"pypi-Ag{_W}{{40}}"),
    ("RubyGems token", rf"rubygems_{_HEX}{{40}}"),
    ("crates.io token", rf"cio{_A}{{32}}\b"),
    ("NuGet key", r"oy2[a-z0-9]{43}\b"),
    ("Docker token", rf"dckr_[po]at_{_W}{{20}}"),
    ("Hugging Face token", rf"(?:hf_|api_org_){_A}{{26}}"),
    ("DigitalOcean token", rf"do[opr]_v1_{_HEX}{{40}}"),
    ("Telegram bot token", rf"\d{{7,11}}:AA{_W}{{30}}|\bbot\d{{7,11}}:{_W}{{30}}|\b\d{{8,10}}:{_W}{{35}}\b"),
    ("Discord token", rf"[A-Za-z]{_W}{{22,27}}\.{_W}{{6}}\.{_W}{{27}}|mfa\.{_W}{{60}}"),
    ("Discord webhook", rf"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(\d{{15,20}}/{_W}{{20}})"),
    ("Cloudflare token", rf"v1\.0-{_HEX}{{24}}-{_HEX}{{100}}|cf(?:k|ut|at)_{_A}{{30}}"),
    ("Datadog key", rf"dd(?:app|pat|api)_{_A}{{30}}"),
    ("New Relic key", rf"NR(?:AK|AL|II|IQ|RA|JS|SP|BR)-{_A}{{16}}"),
    ("Sentry token", r"sntry[sua]_[A-Za-z0-9+/=_-]{40}"),
    ("Sentry key", rf"https?://({_HEX}{{32}}(?::{_HEX}{{32}})?)@[A-Za-z0-9.-]+/\d+"),
    ("Grafana token", rf"gl(?:sa|c)_{_A}{{20}}|eyJrIjoi[A-Za-z0-9+/=]{{20}}"),
    ("Shopify token", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32}\b"),
    ("Square token", rf"sq0(?:atp|csp|idp)-{_W}{{20}}|EAAA{_W}{{56}}"),
    ("Braintree token", rf"access_token\$(?:production|sandbox)\${_A}{{10,20}}\${_HEX}{{32}}"),
    ("Plaid token", rf"access-(?:sandbox|development|production)-{_UUID}"),
    ("Razorpay key", rf"rzp_(?:live|test)_{_A}{{10}}"),
    ("Facebook token", r"EAA[A-Za-z0-9]{80}"),
    ("Twitter token", r"A{20,24}[A-Za-z0-9%]{60}"),
    ("Dropbox token", rf"sl\.(?:u\.)?{_W}{{100}}"),
    ("Databricks token", rf"dapi{_HEX}{{32}}\b"),
    ("Heroku key", rf"HRKU-{_W}{{30}}"),
    ("Netlify token", rf"nf[pcou]_{_A}{{30}}"),
    ("Vercel token", rf"vc[pikar]_{_A}{{24}}|vercel_blob_rw_{_A}{{10,40}}_{_A}{{20}}"),
    ("Fly.io token", rf"fo1_{_W}{{30}}|fm[12][ar]?_[A-Za-z0-9+/=]{{60}}"),
    ("Supabase key", rf"sb(?:p|_secret)_{_W}{{20}}"),
    ("PlanetScale secret", r"pscale_(?:tkn|pw|oauth|app)_[A-Za-z0-9_.=-]{30}"),
    ("HashiCorp Vault token", rf"hv[sbr]\.{_W}{{20}}"),
    ("Terraform token", rf"{_A}{{14}}\.atlasv1\.{_W}{{50}}"),
    ("Pulumi token", rf"pul-{_HEX}{{40}}\b"),
    ("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30}"),
    ("1Password token", rf"ops_eyJ{_W}{{100}}"),
    ("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{50}"),
    ("Linear API key", rf"lin_(?:api|oauth)_{_A}{{30}}"),
    ("Notion token", rf"(?:secret|ntn)_{_A}{{40}}"),
    ("Figma token", rf"fig[dour]_{_W}{{36}}"),
    ("Airtable token", rf"pat{_A}{{14}}\.{_HEX}{{64}}"),
    ("Postman key", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    ("HubSpot token", rf"pat-(?:na|eu)\d-{_UUID}"),
    ("Sonar token", rf"sq[pua]_{_HEX}{{40}}\b"),
    ("CircleCI token", rf"CCI(?:PAT|PRJ)_{_A}+_{_HEX}{{40}}"),
    ("Buildkite token", rf"bk(?:ua|at|pt)_{_HEX}{{30}}"),
    ("JFrog token", r"AKCp[A-Za-z0-9]{60}"),
    ("Clojars token", rf"CLOJARS_{_HEX}{{60}}"),
    ("Tailscale key", rf"tskey-[a-z]+-{_A}{{8,24}}(?:-{_A}{{16}})?"),
    ("Groq API key", rf"gsk_{_A}{{40}}"),
    ("xAI API key", rf"xai-{_A}{{60}}"),
    ("Perplexity API key", rf"pplx-{_A}{{40}}"),
    ("Replicate token", rf"r8_{_A}{{30}}"),
    ("Tavily API key", rf"tvly-(?:dev-|prod-)?{_A}{{24}}"),
    ("LangSmith API key", rf"lsv2_(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    ("Pinecone API key", rf"pcsk_{_W}{{40}}"),
    ("Alibaba Cloud access key", rf"LTAI{_A}{{12}}"),
    ("Tencent Cloud secret id", rf"AKID{_A}{{28}}"),
    ("Volcengine access key", rf"AKLT{_A}{{20}}"),
    ("Baidu Cloud key", rf"bce-v3/ALTAK-{_A}{{16,40}}/{_HEX}{{40}}"),
    ("Yandex Cloud key", rf"AQVN{_W}{{35}}|y[0-3]_{_W}{{50}}"),
    ("Mapbox token", rf"sk\.eyJ{_W}{{40,160}}\.{_W}{{16}}"),
    ("NVIDIA API key", rf"nvapi-{_W}{{50}}"),
    ("Cerebras API key", rf"csk-{_A}{{40}}"),
    ("Firecrawl API key", rf"fc-{_HEX}{{32}}\b"),
    ("E2B API key", rf"e2b_{_A}{{36}}"),
    ("Jina AI API key", rf"jina_{_W}{{50}}"),
    ("Together AI API key", rf"tgp_v1_{_W}{{40}}"),
    ("Fireworks AI API key", rf"fw_{_A}{{22}}"),
    ("RunPod API key", rf"rpa_{_A}{{32}}"),
    ("ElevenLabs API key", rf"sk_{_HEX}{{48}}\b"),
    ("Cartesia API key", rf"sk_car_{_A}{{20}}"),
    ("Apify token", rf"apify_api_{_A}{{30}}"),
    ("Weights & Biases API key", rf"wandb_v1_{_W}{{60}}"),
    ("Zhipu API key", rf"{_HEX}{{32}}\.{_A}{{16}}\b"),
    ("Coze token", rf"(?:pat|cztei|sat)_{_A}{{60}}"),
    ("Dify API key", rf"(?:app|dataset)-{_A}{{24}}\b"),
    ("MailerSend token", rf"mlsn\.{_HEX}{{60}}"),
    ("Volcengine Ark API key", rf"ark-{_UUID}"),
    ("PostHog key", rf"phx_{_W}{{40}}"),
    ("Neon API key", rf"napi_{_A}{{40}}"),
    ("Render API key", rf"rnd_{_A}{{22}}"),
    ("Aiven password", rf"AVNS_{_W}{{16}}"),
    ("Snyk token", rf"snyk_[us]at\.{_A}{{8}}\.{_W}{{20}}"),
    ("JFrog reference token", rf"cmVmdGtu{_A}{{40}}"),
    ("Nexus token", rf"NpmToken\.{_UUID}"),
    ("Contentful token", rf"CFPAT-{_W}{{40}}"),
    ("Honeycomb key", rf"hca[a-z]{{2}}_{_A}{{40}}"),
    ("Dynatrace token", r"dt0[cs]\d\d\.[A-Za-z0-9]{8,24}\.[A-Za-z0-9]{60}"),
    ("New Relic license key", rf"(?:{_HEX}{{32}}|eu01xx{_HEX}{{26}})FFFFNRAL"),
    ("Adafruit IO key", rf"aio_{_A}{{26}}"),
    ("Alibaba Cloud STS key", rf"STS\.N{_A}{{20}}"),
    ("Typeform token", rf"tfp_{_W}{{40}}"),
    ("Trello token", rf"ATTA{_A}{{60}}"),
    ("ClickUp token", r"pk_\d{6,10}_[A-Z0-9]{32}"),
    ("ReadMe key", rf"rdme_{_A}{{60}}"),
    ("Sourcegraph token", rf"sgp_(?:(?:{_HEX}{{16}}|local)_)?{_HEX}{{40}}"),
    ("Prefect key", rf"pnu_{_A}{{36}}"),
    ("Rootly key", rf"rootly_{_HEX}{{64}}"),
    ("Frame.io token", rf"fio-u-{_W}{{60}}"),
    ("Duffel token", rf"duffel_(?:test|live)_{_W}{{40}}"),
    ("EasyPost key", rf"EZ[AT]K{_A}{{54}}"),
    ("Shippo token", rf"shippo_(?:live|test)_{_HEX}{{40}}"),
    ("Infracost key", rf"ico-{_A}{{32}}\b"),
    ("Flutterwave key", r"FLWSECK(?:_TEST)?-[0-9a-z]{32}-X"),
    ("Ramp secret", rf"ramp_sec_{_A}{{48}}"),
    ("OpenShift token", rf"sha256~{_W}{{43}}"),
    ("Harness key", rf"[ps]at\.{_W}{{22}}\.{_A}{{24}}\.{_A}{{20}}"),
    ("MaxMind key", rf"{_A}{{6}}_{_A}{{29}}_mmk"),
    ("Bitbucket Data Center token", r"BBDC-[A-Za-z0-9+/@_-]{40}"),
    ("Octopus Deploy key", r"API-[A-Z0-9]{26}\b"),
    ("Voiceflow key", rf"VF\.(?:DM|WS)\.{_HEX}{{24}}\.{_A}{{16}}"),
    ("Robinhood key", rf"rh-api-{_UUID}"),
    ("1Password secret key", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b"),
    ("Nostr key", r"nsec1[02-9ac-hj-np-z]{58}"),
    ("wallet key", r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{90}"),
    ("Docker Swarm token", r"SWMTKN-\d-[a-z0-9]{40,50}-[a-z0-9]{20}"),
    ("K3s token", rf"K10{_HEX}{{64}}::[a-z0-9:]{{1,12}}:{_HEX}{{16}}"),
    ("Proxmox token", rf"PVEAPIToken=[^\s=]{{1,80}}=({_UUID})"),
    ("Portainer token", r"ptr_[A-Za-z0-9+/]{43}="),
    ("OneSignal key", r"os_v2_(?:app|org)_[a-z2-7]{80}"),
    ("CockroachDB key", rf"CCDB1_{_A}{{22}}_{_A}{{40}}"),
    ("dbt Cloud token", rf"dbt[cu]_{_W}{{30}}"),
    ("Paddle key", rf"pdl_(?:live|sdbx)_apikey_[a-z0-9]{{26}}_{_A}{{22}}"),
    ("Polar token", rf"polar_[a-z]{{2,4}}_{_A}{{40}}"),
    ("Cal.com key", rf"cal_live_{_HEX}{{32}}"),
    ("Browserbase key", rf"bb_live_{_W}{{24}}"),
    ("Deno Deploy token", rf"dd[opw]_{_A}{{36}}\b"),
    ("Inngest key", rf"signkey-[a-z]{{4,8}}-{_HEX}{{32}}"),
    ("LaunchDarkly key", rf"sdk-{_UUID}"),
    ("Zoho token", rf"1000\.{_HEX}{{32}}\.{_HEX}{{32}}"),
    ("DataStax Astra token", rf"AstraCS:{_A}{{24}}:{_HEX}{{64}}"),
    ("Ory token", rf"ory_(?:a[ct]|rt|st|pat|wat)_{_W}{{30}}"),
    ("ntfy token", r"tk_[a-z0-9]{29}\b"),
    ("Login with Amazon secret", rf"amzn1\.oa2-cs\.v1\.{_HEX}{{64}}"),
    ("The Things Network key", r"NNSXS\.[A-Z0-9]{39}\.[A-Z0-9]{52}"),
    ("MongoDB Atlas secret", rf"mdb_sa_sk_{_W}{{30}}"),
    ("Xata key", rf"xau_{_A}{{30}}"),
    ("Ubidots token", rf"BBUS-{_A}{{28}}"),
    ("PayPal token", rf"A21AA{_W}{{80}}"),
    ("Adyen key", r"AQE[a-z][A-Za-z0-9+/]{60}"),
    ("Scalingo token", rf"tk-us-{_W}{{48}}"),
    ("Defined Networking key", r"dnkey-[A-Z0-9]{26}-[A-Z0-9]{52}"),
    ("SettleMint token", rf"sm_(?:pat|aat|sat)_{_A}{{16}}"),
    ("ClickHouse Cloud key", rf"4b1d{_A}{{38}}\b"),
    ("Twitch token", r"oauth:[a-z0-9]{30}\b"),
    ("Feishu webhook", rf"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v2/)?hook/({_W}{{20}})"),
    ("DingTalk signing key", rf"SEC{_HEX}{{64}}\b"),
    ("ServerChan key", rf"SC[TU]\d{{1,8}}T{_A}{{20}}|ft07\.com/send/({_A}{{16}})|sctp\d{{1,8}}t{_A}{{16}}"),
    ("Bark key", rf"api\.day\.app/({_A}{{20}})"),
    ("IFTTT key", rf"maker\.ifttt\.com/trigger/[^/\s]{{1,80}}/(?:json/)?with/key/({_W}{{16}})"),
    ("Zapier webhook", rf"hooks\.zapier\.com/hooks/catch/(\d{{4,12}}/{_A}{{5}})"),
    ("Make webhook", rf"hook\.[a-z0-9]{{2,6}}\.make\.com/({_A}{{28}})"),
    ("Tines webhook", rf"tines\.com/webhook/({_HEX}{{32}}/{_HEX}{{32}})"),
    ("Mattermost webhook", r"/hooks/([a-z0-9]{26})\b"),
    ("Home Assistant webhook", rf"/api/webhook/({_W}{{20}})"),
    ("Power Automate webhook", rf"/triggers/manual/paths/invoke[^\s\"']{{0,200}}[?&]sig=({_W}{{20}})"),
)  # fmt: skip

_AMBIGUOUS: Final = frozenset(
    {
        "API key",
        "Azure storage key",
        "Dify API key",
        "ClickHouse Cloud key",
        "Discord token",
        "Fireworks AI API key",
        "Home Assistant webhook",
        "Mattermost webhook",
        "Telegram bot token",
        "Twitter token",
        "Zhipu API key",
    }
)
"""Formats that ordinary text may match: these must look random, too."""


def _is_not_sample(candidate: Candidate) -> bool:
    return not is_sample(re.sub("A{8,}", "A", candidate.value))  # Azure fills tokens up with A


def _is_random_key(candidate: Candidate) -> bool:
    before = candidate.before(1)
    inside_base64 = before in ("+", "/") or (before.isalnum() and candidate.value.startswith(("+", "/")))
    named_hash = candidate.before(8).endswith(("sha512-", "sha384-", "sha256-"))
    return _is_not_sample(candidate) and not named_hash and not inside_base64 and is_random(candidate.value)


_HASH_NAME: Final = re.compile(
    r"(?:sha\d+|hash|digest|checksum|integrity)[\w\"'() -]{0,12}[:=][ ]?[\"']?$", re.IGNORECASE
)
_NIX_ALPHABET: Final = frozenset("0123456789abcdfghijklmnpqrsvwxyz")


def _is_azure_devops_token(candidate: Candidate) -> bool:
    """Accept a random run that is not called a hash, and has a letter that Nix never writes in hashes."""
    return (
        _is_random_key(candidate)
        and not _NIX_ALPHABET.issuperset(candidate.value)
        and not _HASH_NAME.search(candidate.before(40))
    )


VENDORS: Final = (
    *(
        SecretRule(
            kind, rf"\b(?:{format_})", _is_random_key if kind in _AMBIGUOUS else _is_not_sample, rest="[A-Za-z0-9_-]"
        )
        for kind, format_ in _FORMATS
    ),
    SecretRule("Azure DevOps token", r"\b[a-z0-9]{52}\b", _is_azure_devops_token),
)
