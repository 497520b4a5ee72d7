package places

import (
	"path/filepath"
	"slices"
	"strings"
)

// byName judges a folded path by its names alone, wherever it is, but for what
// the name of the file says.
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
		case ix.guarded[name] || strings.HasSuffix(name, ".code-workspace"):
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

// GitLock reports whether a path is a lock in a repository, such as one that a
// git which was killed has left. Nothing reads what is in it.
func GitLock(path string) bool {
	path = filepath.ToSlash(path)
	_, inside, ok := strings.Cut(path, "/.git/")
	return ok && strings.HasSuffix(inside, ".lock") && !strings.Contains("/"+inside, "/hooks/")
}

// fold makes names that a file system could take for one another the same:
// letters without regard to case, and without the characters that some ignore.
func fold(path string) string {
	if plain(path) {
		return path
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return -1
		case r == 0x017f: // long s
			return 's'
		case r == 0x212a: // Kelvin sign
			return 'k'
		}
		return r
	}, strings.ToLower(path))
}

// plain reports whether a text is what fold makes of it.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x80 || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// secretName reports whether files of this name hold secrets as a rule. The
// name is folded.
func secretName(name string) bool {
	switch {
	case name == ".env" || strings.HasPrefix(name, ".env.") || strings.HasSuffix(name, ".env"):
		return !example(name)
	case strings.HasPrefix(name, "id_rsa") || strings.HasPrefix(name, "id_dsa") || strings.HasPrefix(name, "id_ecdsa") || strings.HasPrefix(name, "id_ed25519"):
		return !strings.HasSuffix(name, ".pub")
	case strings.HasPrefix(name, "service-account") || strings.HasPrefix(name, "service_account"):
		return strings.HasSuffix(name, ".json")
	case strings.HasPrefix(name, "client_secret"):
		return strings.HasSuffix(name, ".json")
	case strings.HasPrefix(name, "credentials.") || strings.HasPrefix(name, "secrets.") || strings.HasPrefix(name, "secret."):
		return slices.Contains([]string{".json", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".csv", ".txt", ".enc", ".db", ".xml", ".properties"}, filepath.Ext(name))
	}
	switch filepath.Ext(name) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".kdb", ".ppk", ".pkcs12", ".ovpn", ".keytab", ".agekey", ".mobileprovision":
		return true
	}
	switch name {
	case ".netrc", "_netrc", ".pgpass", ".pypirc", ".git-credentials", ".htpasswd", ".dockercfg", ".dockerconfigjson", ".vault-token", ".vault_pass", ".my.cnf", ".s3cfg", ".boto",
		"credentials", "kubeconfig", "master.key", "terraform.tfstate", "terraform.tfstate.backup", "terraform.tfvars", ".terraformrc", "keystore.properties", "google-services.json",
		".bash_history", ".zsh_history", ".databrickscfg", "wallet.dat", "shadow", ".rediscli_auth", "htpasswd", "secring.gpg", "login.keychain-db", "cookies.sqlite", "logins.json", "key4.db", "login data", "auth.json":
		return true
	}
	return false
}

// example reports whether a name says that the file only shows what one would
// hold.
func example(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		switch part {
		case "example", "sample", "template", "tmpl", "dist", "defaults", "schema", "d", "ts", "md":
			return true
		}
	}
	return false
}

// secretProc reports whether a path leads into what a process holds in memory
// or in its environment, or through it elsewhere.
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
