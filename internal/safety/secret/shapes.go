package secret

import "slices"

// check is a further requirement of a token in addition to its shape.
type check uint8

const (
	sure      check = iota
	random          // its characters are mixed randomly
	bearing         // the same, and the prefix is not part of it
	login           // base64 of name:password; the prefix is not part of it
	netrc           // a password in a file of logins; the prefix is not part of it
	quoted          // a quoted password; the prefix ends with its first quote and is not part of it
	worded          // a password that is the next word; the prefix is not part of it
	vaulted         // hex lines under a header that names the encrypting program
	account         // a password after a user's name and a slash; neither is part of it
	directive       // the name of a variable and its value; only the value is part of it
	logged          // the last literal of a call that makes a login
	chance          // letters and digits by chance
	enclosed        // the prefix follows a quote, and another follows it
)

// shape is a token with a known beginning.
type shape struct {
	prefix string
	// tail is the rest. A letter is a class and the number its minimum length (after =: the exact length,
	// without a letter or digit after it); anything else is literal. A alphanumeric, W those with - and _, B
	// base64, H hex, U upper case and digits, D digits, R characters of a bearer token, N any except space.
	tail  string
	what  string
	check check

	// Derived from these:
	class class  // class at the start of the tail
	least int    // minimum bytes of it, up to 16
	next  uint16 // the next shape of the same slot; 0 means none
}

// privateKey describes keys that may span lines.
const privateKey = "a private key"

// shapes returns the known tokens. They are documented by the vendors, such as
// github.blog/changelog/2021-03-31-authentication-token-format-updates-are-generally-available,
// docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, RFC 7519 for web tokens, RFC 6750 and
// 7617 for headers.
func shapes() []shape {
	return slices.Concat(models(), clouds(), forges(), registries(), services(), more(), hooks(), headers(), spoken(), hashes(), sealed(), logins())
}

// models returns the tokens of model vendors.
func models() []shape {
	return []shape{
		{prefix: "sk-", tail: "W20", what: "an API key", check: random},
		{prefix: "gsk_", tail: "A40", what: "a Groq key"},
		{prefix: "xai-", tail: "A60", what: "an xAI key"},
		{prefix: "pplx-", tail: "A40", what: "a Perplexity key"},
		{prefix: "r8_", tail: "A36", what: "a Replicate token"},
		{prefix: "hf_", tail: "A30", what: "a Hugging Face token"},
		{prefix: "api_org_", tail: "A30", what: "a Hugging Face token"},
		{prefix: "csk-", tail: "A40", what: "a Cerebras key"},
		{prefix: "nvapi-", tail: "W50", what: "an NVIDIA key"},
		{prefix: "fw_", tail: "A24", what: "a Fireworks key", check: random},
		{prefix: "tgp_v1_", tail: "W40", what: "a Together key"},
		{prefix: "AIza", tail: "W35", what: "a Google key"},
		{prefix: "ya29.", tail: "W20", what: "a Google token"},
		{prefix: "1//0", tail: "W40", what: "a Google token"},
		{prefix: "GOCSPX-", tail: "W28", what: "a Google secret"},
		{prefix: "AQ.Ab", tail: "W40", what: "a Google key"},
	}
}

// clouds returns the tokens of clouds and hosting providers.
func clouds() []shape {
	return []shape{
		{prefix: "AKIA", tail: "U=16", what: "an AWS key"},
		{prefix: "ASIA", tail: "U=16", what: "an AWS key"},
		{prefix: "ABIA", tail: "U=16", what: "an AWS key"},
		{prefix: "ACCA", tail: "U=16", what: "an AWS key"},
		{prefix: "A3T", tail: "U=17", what: "an AWS key"},
		{prefix: "ABSK", tail: "B100", what: "an AWS key"},
		{prefix: "bedrock-api-key-", tail: "W100", what: "an AWS key"},
		{prefix: "LTAI", tail: "A16", what: "an Alibaba key", check: random},
		{prefix: "AKID", tail: "A32", what: "a Tencent key"},
		{prefix: "dop_v1_", tail: "H64", what: "a DigitalOcean token"},
		{prefix: "doo_v1_", tail: "H64", what: "a DigitalOcean token"},
		{prefix: "dor_v1_", tail: "H64", what: "a DigitalOcean token"},
		{prefix: "HRKU-", tail: "W36", what: "a Heroku key"},
		{prefix: "cfut_", tail: "A40", what: "a Cloudflare token"},
		{prefix: "cfat_", tail: "A40", what: "a Cloudflare token"},
		{prefix: "cfk_", tail: "A40", what: "a Cloudflare token"},
		{prefix: "v1.0-", tail: "H24-H100", what: "a Cloudflare key"},
		{prefix: "FlyV1 fm1", tail: "R60", what: "a Fly token"},
		{prefix: "FlyV1 fm2", tail: "R60", what: "a Fly token"},
		{prefix: "fm1r_", tail: "B60", what: "a Fly token"},
		{prefix: "fm1a_", tail: "B60", what: "a Fly token"},
		{prefix: "fm2_", tail: "B60", what: "a Fly token"},
		{prefix: "fo1_", tail: "W40", what: "a Fly token"},
		{prefix: "vercel_blob_rw_", tail: "W30", what: "a Vercel token"},
		{prefix: "vcp_", tail: "A24", what: "a Vercel token", check: random},
		{prefix: "vci_", tail: "A24", what: "a Vercel token", check: random},
		{prefix: "vca_", tail: "A24", what: "a Vercel token", check: random},
		{prefix: "vcr_", tail: "A24", what: "a Vercel token", check: random},
		{prefix: "vck_", tail: "A24", what: "a Vercel token", check: random},
		{prefix: "nfp_", tail: "A36", what: "a Netlify token"},
		{prefix: "rnd_", tail: "A28", what: "a Render key", check: random},
		{prefix: "dapi", tail: "H32", what: "a Databricks token"},
		{prefix: "dkea", tail: "H32", what: "a Databricks token"},
		{prefix: "pscale_tkn_", tail: "R32", what: "a PlanetScale token"},
		{prefix: "pscale_pw_", tail: "R32", what: "a PlanetScale token"},
		{prefix: "pscale_oauth_", tail: "R32", what: "a PlanetScale token"},
		{prefix: "sbp_", tail: "H40", what: "a Supabase token"},
		{prefix: "sb_secret_", tail: "W28", what: "a Supabase key"},
		{prefix: "napi_", tail: "A40", what: "a Neon key"},
		{prefix: "tskey-auth-", tail: "W16", what: "a Tailscale key"},
		{prefix: "tskey-api-", tail: "W16", what: "a Tailscale key"},
		{prefix: "tskey-client-", tail: "W16", what: "a Tailscale key"},
		{prefix: "pul-", tail: "H40", what: "a Pulumi token"},
		{prefix: "hvs.", tail: "W24", what: "a Vault token"},
		{prefix: "hvb.", tail: "W24", what: "a Vault token"},
		{prefix: "hvr.", tail: "W24", what: "a Vault token"},
		{prefix: "dp.pt.", tail: "R40", what: "a Doppler token"},
		{prefix: "dp.st.", tail: "R40", what: "a Doppler token"},
		{prefix: "dp.ct.", tail: "R40", what: "a Doppler token"},
		{prefix: "dp.sa.", tail: "R40", what: "a Doppler token"},
		{prefix: "ops_eyJ", tail: "B60", what: "a 1Password token"},
		{prefix: "AGE-SECRET-KEY-1", tail: "U50", what: privateKey},
		{prefix: "AGE-SECRET-KEY-PQ-1", tail: "U50", what: privateKey},
		{prefix: "CCIPAT_", tail: "W40", what: "a CircleCI token"},
		{prefix: "bkua_", tail: "H40", what: "a Buildkite token"},
	}
}

// forges returns the tokens of code hosts.
func forges() []shape {
	return []shape{
		{prefix: "ghp_", tail: "A36", what: "a GitHub token"},
		{prefix: "gho_", tail: "A36", what: "a GitHub token"},
		{prefix: "ghu_", tail: "A36", what: "a GitHub token"},
		{prefix: "ghs_", tail: "A36", what: "a GitHub token"},
		{prefix: "ghr_", tail: "A36", what: "a GitHub token"},
		{prefix: "github_pat_", tail: "W22", what: "a GitHub token"},
		{prefix: "glpat-", tail: "W20", what: "a GitLab token"},
		{prefix: "gldt-", tail: "W20", what: "a GitLab token"},
		{prefix: "glrt-", tail: "W20", what: "a GitLab token"},
		{prefix: "glptt-", tail: "W20", what: "a GitLab token"},
		{prefix: "glcbt-", tail: "W20", what: "a GitLab token"},
		{prefix: "glagent-", tail: "W20", what: "a GitLab token"},
		{prefix: "gloas-", tail: "W20", what: "a GitLab token"},
		{prefix: "glsoat-", tail: "W20", what: "a GitLab token"},
		{prefix: "glimt-", tail: "W20", what: "a GitLab token"},
		{prefix: "glffct-", tail: "W20", what: "a GitLab token"},
		{prefix: "glft-", tail: "W20", what: "a GitLab token"},
		{prefix: "_gitlab_session=", tail: "A32", what: "a GitLab session", check: bearing},
		{prefix: "GR1348941", tail: "W20", what: "a GitLab token"},
		{prefix: "ATATT3", tail: "B28", what: "an Atlassian token"},
		{prefix: "ATCTT3", tail: "B28", what: "an Atlassian token"},
		{prefix: "ATBB", tail: "B28", what: "an Atlassian token"},
		{prefix: "ATSTT3", tail: "B28", what: "an Atlassian token"},
		{prefix: "sntrys_eyJ", tail: "B40", what: "a Sentry token"},
		{prefix: "sntryu_", tail: "H60", what: "a Sentry token"},
		{prefix: "squ_", tail: "H40", what: "a SonarQube token"},
		{prefix: "sqp_", tail: "H40", what: "a SonarQube token"},
		{prefix: "sqa_", tail: "H40", what: "a SonarQube token"},
		{prefix: "snyk_uat.", tail: "R40", what: "a Snyk token"},
	}
}

// registries returns the tokens of package registries.
func registries() []shape {
	return []shape{
		{prefix: "npm_", tail: "A36", what: "an npm token"},
		{prefix: "pypi-", tail: "W50", what: "a PyPI token"},
		{prefix: "dckr_pat_", tail: "W20", what: "a Docker token"},
		{prefix: "dckr_oat_", tail: "W20", what: "a Docker token"},
		{prefix: "rubygems_", tail: "H48", what: "a RubyGems key"},
		{prefix: "cio", tail: "A=32", what: "a crates.io token", check: random},
		{prefix: "oy2", tail: "A=43", what: "a NuGet key", check: random},
		{prefix: "AKCp", tail: "A69", what: "an Artifactory key"},
		{prefix: "tfp_", tail: "W50", what: "a Typeform token"},
	}
}

// services returns the tokens of other services.
func services() []shape {
	return []shape{
		{prefix: "inspan_grant_", tail: "H40_H64", what: "a token of inspan"},
		{prefix: "inspan_", tail: "A12_W43", what: "a token of inspan"},
		{prefix: "xoxa-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxb-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxe-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxo-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxp-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxr-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxs-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxc-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxd-", tail: "W10", what: "a Slack token"},
		{prefix: "xoxe.xox", tail: "R30", what: "a Slack token"},
		{prefix: "xapp-", tail: "W20", what: "a Slack token", check: random},
		{prefix: "sk_live_", tail: "A20", what: "a Stripe key"},
		{prefix: "rk_live_", tail: "A20", what: "a Stripe key"},
		{prefix: "sk_test_", tail: "A20", what: "a Stripe key"},
		{prefix: "rk_test_", tail: "A20", what: "a Stripe key"},
		{prefix: "sk_prod_", tail: "A20", what: "a Stripe key"},
		{prefix: "rk_prod_", tail: "A20", what: "a Stripe key"},
		{prefix: "whsec_", tail: "B24", what: "a Stripe secret"},
		{prefix: "SK", tail: "H=32", what: "a Twilio key"},
		{prefix: "SG.", tail: "W16.W16", what: "a SendGrid key"},
		{prefix: "key-", tail: "H=32", what: "a Mailgun key"},
		{prefix: "xkeysib-", tail: "H64-A16", what: "a Brevo key"},
		{prefix: "sq0atp-", tail: "W22", what: "a Square token"},
		{prefix: "sq0csp-", tail: "W43", what: "a Square secret"},
		{prefix: "EAAA", tail: "W=60", what: "a Square token", check: random},
		{prefix: "shpat_", tail: "H32", what: "a Shopify token"},
		{prefix: "shpss_", tail: "H32", what: "a Shopify token"},
		{prefix: "shpca_", tail: "H32", what: "a Shopify token"},
		{prefix: "shppa_", tail: "H32", what: "a Shopify token"},
		{prefix: "lin_api_", tail: "A32", what: "a Linear key"},
		{prefix: "lin_oauth_", tail: "A32", what: "a Linear key"},
		{prefix: "ntn_", tail: "A40", what: "a Notion token"},
		{prefix: "secret_", tail: "A43", what: "a Notion token", check: random},
		{prefix: "pat", tail: "A14.H64", what: "an Airtable token"},
		{prefix: "figd_", tail: "W40", what: "a Figma token"},
		{prefix: "NRAK-", tail: "U27", what: "a New Relic key"},
		{prefix: "glsa_", tail: "A32_H8", what: "a Grafana token"},
		{prefix: "glc_", tail: "B40", what: "a Grafana token"},
		{prefix: "PMAK-", tail: "H24-H34", what: "a Postman key"},
		{prefix: "phx_", tail: "A40", what: "a PostHog key"},
		{prefix: "sl.B", tail: "W60", what: "a Dropbox token"},
		{prefix: "sl.u.", tail: "W60", what: "a Dropbox token"},
		{prefix: "CFPAT-", tail: "W43", what: "a Contentful token"},
		{prefix: "eyJ", tail: "W8.eyJW8.W8", what: "a web token"},
		{prefix: "ZXlKaGJHY2lPaU", tail: "B80", what: "a web token"}, // base64 of one
	}
}

// headers returns the tokens in authentication headers and files of logins.
func headers() []shape {
	return []shape{
		{prefix: "Bearer ", tail: "R16", what: "a bearer token", check: bearing},
		{prefix: "bearer ", tail: "R16", what: "a bearer token", check: bearing},
		{prefix: "BEARER ", tail: "R16", what: "a bearer token", check: bearing},
		{prefix: "Basic ", tail: "B8", what: "a login", check: login},
		{prefix: "basic ", tail: "B8", what: "a login", check: login},
		{prefix: "BASIC ", tail: "B8", what: "a login", check: login},
		{prefix: "password ", tail: "N", what: "a password", check: netrc},
		{prefix: "password\t", tail: "N", what: "a password", check: netrc},
		{prefix: "password\n", tail: "N", what: "a password", check: netrc},
	}
}
