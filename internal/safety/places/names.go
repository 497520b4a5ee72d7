package places

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// byName judges a folded path by its names only, wherever it is, except for the name of the file.
func (ix *index) byName(path string) (Guard, string) {
	names := strings.Split(path, string(filepath.Separator))
	guard, why := Plain, ""
	for i, name := range names {
		g, w := Plain, ""
		switch {
		case name == ".git" && i > 0 && !GitLock(path):
			g, w = Frozen, "belongs to the insides of a repository"
		case name == ".inspan":
			g, w = Frozen, "tells inspan what to do"
		case name == ".ssh" || name == ".aws" || name == ".gnupg":
			g, w = Secret, "is named like a folder of secrets"
		case i > 0 && dockerLogins(names[i-1], name):
			g, w = Secret, "holds logins of registries"
		case i == 2 && names[1] == "dev" && !ordinaryDevice(name):
			g, w = Frozen, "is a device of the machine"
		case ix.guarded[name] || i > 0 && guardedForm(names[i-1], name):
			g, w = Guarded, "names programs that others run"
		}
		if stricter(g, guard) {
			guard, why = g, w
		}
	}
	if secretProc(names) {
		return Secret, "shows the insides of a process"
	}
	return guard, why
}

// GitLock reports whether a path is a lock in a repository, such as one that a killed git left. No program
// reads its content.
func GitLock(path string) bool {
	path = filepath.ToSlash(path)
	_, inside, ok := strings.Cut(path, "/.git/")
	return ok && strings.HasSuffix(inside, ".lock") && !strings.Contains("/"+inside, "/hooks/")
}

// fold maps names that a file system could treat as equal to the same name: it ignores case, and characters
// that some file systems ignore.
func fold(path string) string {
	if plain(path) {
		return path
	}
	return strings.Map(func(r rune) rune {
		switch {
		case text.Ignored.Has(r):
			return -1
		case r == 0x017f: // long s
			return 's'
		case r == 0x212a: // Kelvin sign
			return 'k'
		}
		return r
	}, strings.ToLower(path))
}

// plain reports whether a text is already folded.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x80 || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// ordinaryDevice reports whether a name below /dev contains no data of the machine.
func ordinaryDevice(name string) bool {
	return slices.Contains([]string{
		"null", "zero", "full", "random", "urandom",
		"tty", "stdin", "stdout", "stderr", "fd", "pts", "ptmx", "shm",
	}, name)
}

// secretName reports whether files of this folded name usually contain secrets, or are copies of such files.
func secretName(name string) bool {
	for range 3 {
		if knownSecret(name) {
			return true
		}
		original := uncopied(name)
		if original == name {
			return false
		}
		name = original
	}
	return false
}

// uncopied returns the name of the original of a copied file, according to how editors, package managers and
// people name copies.
func uncopied(name string) string {
	if inner, ok := strings.CutPrefix(name, "#"); ok && strings.HasSuffix(inner, "#") && len(inner) > 1 {
		return inner[:len(inner)-1]
	}
	if rest, ok := strings.CutPrefix(name, ".#"); ok && rest != "" {
		return rest
	}
	for _, swap := range []string{".swp", ".swo", ".swn", ".swx"} {
		if inner, ok := strings.CutSuffix(name, swap); ok && len(inner) > 1 && inner[0] == '.' {
			if knownSecret(inner) {
				return inner
			}
			return inner[1:]
		}
	}
	for _, mark := range []string{
		"~", ".bak", ".back", ".backup", ".bk", ".bkp", ".old", ".orig", ".original", ".save", ".saved", ".copy", ".prev", ".previous", ".tmp",
		".temp", ".dpkg-old", ".dpkg-new", ".dpkg-dist",
		".ucf-old", ".rpmsave", ".rpmorig", ".rpmnew", ".pacsave", ".pacnew", ".disabled", ".rej", "-old", "_old", "-bak", "_bak", "-backup",
		"_backup", "-copy", " copy", " (1)", " (2)", ".1", ".2",
	} {
		if inner, ok := strings.CutSuffix(name, mark); ok && inner != "" {
			return inner
		}
	}
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot > 6 && strings.Trim(name[dot+1:], "0123456789-_t") == "" {
		return name[:dot] // with a date
	}
	return name
}

// secretFolder reports whether a folder of this folded name is for secrets. Only data in it counts: code
// packages have such names too.
func secretFolder(name string) bool {
	return slices.Contains([]string{
		"secrets", ".secrets", "secret", ".secret", ".credentials",
		"credentials", ".creds", "private-keys", "private_keys", ".auth", ".vault",
	}, name)
}

// data reports whether a file in such a folder is data rather than code or prose.
func data(name string) bool {
	return !example(name) && slices.Contains([]string{
		"", ".json", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".env", ".txt",
		".properties", ".xml", ".csv", ".b64", ".token", ".pass", ".password", ".secret",
	}, filepath.Ext(name)) &&
		!slices.Contains([]string{
			"makefile", "dockerfile", "license", "readme", "readme.txt", "codeowners", "kustomization.yaml",
			"kustomization.yml", "package.json", "tsconfig.json",
		}, name)
}

func knownSecret(name string) bool {
	switch {
	case name == ".env" || strings.HasPrefix(name, ".env.") || strings.HasPrefix(name, ".env-") ||
		strings.HasPrefix(name, ".env_") || strings.HasSuffix(name, ".env"):
		return !example(strings.NewReplacer("-", ".", "_", ".").Replace(name))
	case strings.HasPrefix(name, "id_rsa") || strings.HasPrefix(name, "id_dsa") ||
		strings.HasPrefix(name, "id_ecdsa") || strings.HasPrefix(name, "id_ed25519"):
		return !strings.HasSuffix(name, ".pub")
	case strings.HasPrefix(name, "service-account") || strings.HasPrefix(name, "service_account") ||
		strings.HasPrefix(name, "serviceaccount") || strings.Contains(name, "firebase-adminsdk"):
		return strings.HasSuffix(name, ".json")
	case strings.HasPrefix(name, "client_secret") || strings.HasSuffix(name, "-credentials.json") ||
		strings.HasSuffix(name, "_credentials.json"):
		return strings.HasSuffix(name, ".json")
	case strings.HasPrefix(name, "credentials.") || strings.HasPrefix(name, "secrets.") || strings.HasPrefix(name, "secret."):
		return slices.Contains([]string{".json", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".csv", ".txt", ".enc", ".db", ".xml", ".properties"},
			filepath.Ext(name))
	}
	switch filepath.Ext(name) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".jceks", ".bks", ".keystore", ".kdbx", ".kdb", ".psafe3", ".ppk", ".pvk", ".p8", ".pkcs12",
		".ovpn", ".keytab", ".agekey", ".mobileprovision", ".tfvars", ".tfstate", ".kubeconfig":
		return true
	}
	return slices.Contains([]string{
		".netrc", "_netrc", ".pgpass", "pgpass.conf", ".pypirc", ".git-credentials", ".htpasswd", ".htdigest", ".dockercfg", ".dockerconfigjson",
		".vault-token", ".vault_pass", ".vault_pass.txt", ".vault-password", ".vault_password", "vault_pass", "vault_pass.txt",
		"vault-password", "vault_password", "vault_password_file", "vault.yml", "vault.yaml", "vault.json", "vault-keys.json", "vault_keys.json",
		".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", "credentials", ".credentials", "kubeconfig", "master.key", "terraform.tfstate.backup",
		".terraformrc", "keystore.properties", "key.properties", "google-services.json",
		".bash_history", ".zsh_history", ".databrickscfg", "wallet.dat", "shadow", "gshadow", ".rediscli_auth", "htpasswd", "secring.gpg",
		"login.keychain-db", "cookies.sqlite", "cookies.txt", "logins.json", "key4.db", "login data", "auth.json",
		// Environment files of other tools.
		".dev.vars", ".flaskenv", ".secrets", ".secret", "local.settings.json", ".runtimeconfig.json",
		// Credentials of single tools in a project.
		".sentryclirc", ".clasprc.json", "hubspot.config.yml", "ngrok.yml", "rclone.conf", ".smbcredentials", "smbcredentials",
		"wpa_supplicant.conf", ".msmtprc", "msmtprc", ".mbsyncrc", ".offlineimaprc", ".fetchmailrc", ".authinfo",
		"sftp-config.json", ".ftpconfig", ".ftppass", "filezilla.xml", "sitemanager.xml", "recentservers.xml", "ws_ftp.ini", "winscp.ini",
		"credentials-config.json", ".twurlrc", ".arcrc", "settings-security.xml", ".snowsql",
		"application_default_credentials.json", "gcloud-service-key.json", "storagestate.json", ".vault.yml", "dump.rdb", ".erlang.cookie",
	}, name)
}

// example reports whether a name says that the file is only an example.
func example(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		switch part {
		case "example", "sample", "template", "tmpl", "dist", "defaults", "schema", "d", "ts", "md":
			return true
		}
	}
	return false
}

// secretProc reports whether a path leads to the memory or environment of a process, or through a process
// elsewhere.
func secretProc(names []string) bool {
	if len(names) < 4 || names[1] != "proc" {
		return false
	}
	switch names[2] {
	case "sys", "bus", "fs", "net", "irq", "driver", "tty", "acpi", "scsi":
		return false
	}
	for _, name := range names[3:] {
		switch name {
		case "environ", "mem", "maps", "smaps", "fd", "root", "cwd", "pagemap", "auxv", "stack", "syscall", "map_files", "fdinfo", "task":
			return true
		}
	}
	return false
}
