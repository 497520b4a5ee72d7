package secret

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Plain reports whether a file with the name of a secret contains none, judging by all of its content. In doubt
// it returns false. It knows certificates and public keys in PEM files, and settings with ordinary values, one
// per line. Other files are plain only if empty.
func Plain(name string, data []byte) bool {
	text := string(data)
	if strings.TrimSpace(text) == "" {
		return true
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return false
	}
	name = strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	check := plainSettings
	switch ext := path.Ext(name); {
	case ext == ".pem", ext == ".key", strings.HasPrefix(name, "id_"):
		check = plainPEM
	case !holdsSettings(name):
		return false
	}
	if !check(text) {
		return false
	}
	_, found := new(Finder).First(text)
	return !found
}

// holdsSettings reports whether files of a name contain lines of settings.
func holdsSettings(name string) bool {
	switch {
	case name == ".env", strings.HasPrefix(name, ".env."), strings.HasPrefix(name, ".env-"),
		strings.HasPrefix(name, ".env_"), strings.HasSuffix(name, ".env"):
		return true
	case slices.Contains([]string{"kubeconfig", ".flaskenv", ".dev.vars"}, name):
		return true
	}
	return slices.Contains([]string{".json", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".txt", ".properties", ".tfvars"},
		path.Ext(name))
}

// plainPEM reports whether a text is PEM and each of its blocks is public.
func plainPEM(text string) bool {
	blocks, open := 0, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		label, begins := strings.CutPrefix(line, "-----BEGIN ")
		end, ends := strings.CutPrefix(line, "-----END ")
		switch {
		case strings.Contains(strings.ToUpper(line), "PRIVATE KEY"):
			return false
		case begins:
			if open != "" || !publicLabel(label) {
				return false
			}
			open = label
			blocks++
		case ends:
			if end != open {
				return false
			}
			open = ""
		}
	}
	return blocks > 0 && open == ""
}

func publicLabel(label string) bool {
	label, ok := strings.CutSuffix(label, "-----")
	return ok && slices.Contains([]string{
		"CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE", "X509 CRL", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST",
		"ATTRIBUTE CERTIFICATE", "PKCS7", "CMS",
		"PUBLIC KEY", "RSA PUBLIC KEY", "DSA PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "EC PARAMETERS", "DH PARAMETERS", "DSA PARAMETERS",
	}, label)
}

// plainSettings reports whether each line of a text is a setting with an ordinary value. Other lines could be
// secrets.
func plainSettings(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") || strings.HasPrefix(line, "//")
		line = strings.TrimSpace(strings.TrimLeft(line, "#;/-, \t"))
		if strings.Trim(line, "{}[](),") == "" || strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			continue
		}
		at := strings.IndexAny(line, "=:")
		if at < 0 {
			if !comment {
				return false
			}
			continue
		}
		name, value := line[:at], strings.Trim(line[at+1:], " \t\"',;{[")
		if !plainSetting(strings.Trim(strings.TrimPrefix(name, "export "), " \t\"'"), value) {
			return false
		}
	}
	return true
}

// plainSetting reports whether a value is public, whatever its setting.
func plainSetting(name, value string) bool {
	if value == "" || strings.Trim(value, "0123456789.") == "" && len(value) < 8 || isDummy(value) || standIn(value) {
		return true
	}
	if strings.ContainsAny(name, " \t") || strings.ContainsAny(value, "\"{}") ||
		len(value) > 200 || strings.Contains(value, "@") && strings.Contains(value, ":") {
		return false
	}
	name = strings.ToLower(name)
	for _, part := range []string{
		"pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie", "salt", "priv", "dsn", "conn", "jwt", "cert", "sign", "hook", "sid",
		"pin", "seed", "mnemonic", "hash", "login", "bearer",
	} {
		if strings.Contains(name, part) {
			return false
		}
	}
	for piece := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune("/.,:;_- \t?&=", r) }) {
		if len(piece) >= 16 && secretive(piece) || len(piece) >= 10 && mixed(piece) {
			return false
		}
	}
	return true
}
