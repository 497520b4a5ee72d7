package secret_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/secret"
)

func TestPlain(t *testing.T) {
	cert := "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0FURUdPUlkxMjM0NTY3ODkwMAoGCCqGSM49BAMCMBYx\nFDASBgNVBAMMC2V4YW1wbGUuY29t\n" +
		"-----END CERTIFICATE-----\n"
	key := "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVcB2UcbPzPqVUWnW\n-----END PRIVATE KEY-----\n"
	public := strings.NewReplacer("CERTIFICATE", "PUBLIC KEY").Replace(cert)
	for _, tc := range []struct {
		name, text string
		want       bool
	}{
		{"server.pem", cert, true},
		{"server.pem", "Certificate:\n    Data:\n        Version: 3 (0x2)\n" + cert + cert, true},
		{"SERVER.PEM", cert, true},
		{"pub.key", public, true},
		{"id_rsa.txt", public, true},
		{"empty.key", "", true},
		{".netrc", " \n", true},
		{"server.pem", key, false},
		{"bundle.pem", cert + key, false},
		{"bundle.pem", strings.Repeat(cert, 5000) + key, false},
		{"bundle.pem", cert + strings.ReplaceAll(key, "\n", "\r\n"), false},
		{"bundle.pem", cert + strings.ToLower(key), false},
		{"bundle.pem", cert + "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz\n", false},
		{"cut.pem", strings.TrimSuffix(cert, "-----END CERTIFICATE-----\n"), false},
		{"odd.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END PRIVATE-----\n", false},
		{"odd.pem", "-----BEGIN SOMETHING-----\nAAAA\n-----END SOMETHING-----\n", false},
		{"token.pem", cert + "GITHUB_TOKEN=ghp_f7Kq2LmX9vRt4YsB6nWc3ZpD8hJg5EaU1oQi\n", false},
		{"words.pem", "hello\n", false},
		{"der.key", "\x30\x82\x04\xa4\x02\x01\x00\x00", false},
		{"aes.key", "6f1c2b7d9e0a4c53b8d1e6f7a2c94b50\n", false},
		{".env", "PORT=8080\nDEBUG=true\nHOST=localhost\n# comment\nNODE_ENV=production\n\nexport GREETING=\"hello world\"\n", true},
		{".env", "API_KEY=\nDB_PASSWORD=changeme\n", true},
		{"secrets.yaml", "name: app\nreplicas: 3\n", true},
		{"credentials.json", "{\n  \"region\": \"eu-west-1\",\n  \"retries\": 3\n}\n", true},
		{".env", "DB_PASS=swordfish\n", false},
		{".env", "PORT=8080\nDB_PASSWORD=hunter2\n", false},
		{".env", "# DB_PASSWORD=hunter2\nPORT=1\n", false},
		{".env", "URL=postgres://app:hunter2@db/x\n", false},
		{".env", "THING=f7Kq2LmX9vRt4YsB6nWc3ZpD\n", false},
		{".env", "X=one\nswordfish\n", false},
		{".env.local", "STRIPE_WEBHOOK=abc\n", false},
		{"secret.txt", "the password is swordfish\n", false},
		{"credentials", "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLA\n", false},
		{"credentials.json", `{"installed":{"client_secret":"abc"}}`, false},
		{"x.p12", "PORT=1\n", false},
		{".bash_history", "ls\n", false},
		{"cookies.sqlite", "A=b\n", false},
	} {
		if got := secret.Plain("/w/"+tc.name, []byte(tc.text)); got != tc.want {
			t.Errorf("%s %.60q: %t", tc.name, tc.text, got)
		}
	}
}
