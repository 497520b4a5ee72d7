package shell

import (
	"regexp"
	"slices"
	"strings"
)

const (
	address = `^[a-z][a-z0-9+.-]*://(?:[^/@]*@)?(\[[0-9a-fA-F:.]+\]|[^/:?#]+)`
	scpLike = `^(?:[A-Za-z0-9._-]+@)([A-Za-z0-9.-]+):`
	nearby  = `^(localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\]|::1)(?::\d+)?(?:[/?#].*)?$`
)

// hostOf returns the host of an address such as https://host/path or user@host:path, or nothing.
func hostOf(text string) string {
	for _, form := range []struct{ sign, pattern string }{{"://", address}, {"@", scpLike}} {
		if !strings.Contains(text, form.sign) {
			continue
		}
		if m := regexp.MustCompile(form.pattern).FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

// dials records the hosts of network programs. It reports whether the program is one.
func (c *call) dials() bool {
	host := ""
	switch c.name {
	case "curl", "wget", "http", "https", "aria2c", "lynx", "w3m", "links", "ftp", "sftp", "scp", "rsync":
		host = c.hosts(false)
	case "ssh", "ping", "ping6", "dig", "host", "nslookup", "nc", "ncat",
		"netcat", "telnet", "traceroute", "tracepath", "mtr", "whois", "socat", "mosh":
		host = c.hosts(true)
	case "gh":
		host = "github.com"
	case "glab":
		host = "gitlab.com"
	default:
		return false
	}
	c.prefix = nil
	if c.name == "gh" || c.name == "glab" {
		c.prefix = prefixOf(c.name, c.args)
	}
	c.v.network(host)
	c.v.full(c.name + " talks to another machine")
	return true
}

// curlValues are options of curl whose values may look like addresses but are not.
const curlValues = "-d --data --data-raw --data-binary --data-urlencode --json -H --header -F --form -A --user-agent -e --referer -o " +
	"--output -w --write-out"

// hosts finds the host in the arguments; bare says that the first operand is a host even without a scheme. An
// asterisk means an unknown one.
func (c *call) hosts(bare bool) string {
	value := false // of an option
	for _, w := range c.args {
		if value || !w.known || strings.HasPrefix(w.text, "-") || w.text == "" {
			value = c.name == "curl" && slices.Contains(strings.Fields(curlValues), w.text)
			continue
		}
		if h := hostOf(w.text); h != "" {
			return h
		}
		if m := regexp.MustCompile(nearby).FindStringSubmatch(w.text); m != nil {
			return m[1]
		}
		if at := strings.LastIndexByte(w.text, '@'); bare && strings.ContainsAny(w.text, ".:") {
			return w.text[at+1:]
		}
	}
	return "*"
}

// registry lists the hosts that a package manager fetches from, if its words request that. It is informative;
// nothing is proven by it.
func (c *call) registry() []string {
	verb := ""
	for _, w := range c.args {
		if w.known && (w.text == "--offline" || w.text == "--no-index") {
			return nil
		}
	}
	for _, w := range c.args {
		if w.known && !strings.HasPrefix(w.text, "-") {
			verb = w.text
			break
		}
	}
	for _, r := range []struct{ programs, verbs, hosts string }{
		{
			"npm pnpm yarn bun npx bunx pnpx", "install i add ci update upgrade dlx exec create init audit outdated view info",
			"registry.npmjs.org",
		},
		{"yarn pnpm bun", "", "registry.npmjs.org"},
		{"npx bunx pnpx", "*", "registry.npmjs.org"},
		{"pip pip3 pipx uv poetry", "install download add sync update lock index wheel", "pypi.org files.pythonhosted.org"},
		{"go", "get mod install", "proxy.golang.org sum.golang.org"},
		{"cargo", "add install update fetch publish", "index.crates.io static.crates.io crates.io"},
		{"gem bundle", "install update add", "rubygems.org index.rubygems.org"},
		{"composer", "install update require", "repo.packagist.org"},
		{"mvn gradle", "*", "repo.maven.apache.org repo1.maven.org plugins.gradle.org"},
		{"dotnet", "restore add build", "api.nuget.org"},
		{"docker podman", "pull push build run compose login", "*"},
		{"apt apt-get", "install update upgrade", "deb.debian.org security.debian.org archive.ubuntu.com security.ubuntu.com"},
		{"apk", "add update upgrade", "dl-cdn.alpinelinux.org"},
		{"dnf yum brew pacman", "install update upgrade", "*"},
		{"terraform tofu", "init plan apply", "*"},
		{"kubectl helm aws gcloud az", "*", "*"},
	} {
		if !slices.Contains(strings.Fields(r.programs), c.name) {
			continue
		}
		if r.verbs == "*" || slices.Contains(strings.Fields(r.verbs), verb) || r.verbs == "" && len(c.args) == 0 {
			return strings.Fields(r.hosts)
		}
	}
	return nil
}
