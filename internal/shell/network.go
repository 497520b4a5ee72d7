package shell

import (
	"regexp"
	"strings"
)

var (
	address = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://(?:[^/@]*@)?(\[[0-9a-fA-F:.]+\]|[^/:?#]+)`)
	scpLike = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)([A-Za-z0-9.-]+):`)
)

// hostOf returns the host of an address such as https://host/path or
// user@host:path, or nothing.
func hostOf(text string) string {
	if m := address.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := scpLike.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// dials records what programs of the network talk to. It reports whether the
// program is one of those.
func (c *call) dials() bool {
	host := ""
	switch c.name {
	case "curl", "wget", "http", "https", "aria2c", "lynx", "w3m", "links", "ftp", "sftp", "scp", "rsync":
		host = c.hosts(false)
	case "ssh", "ping", "ping6", "dig", "host", "nslookup", "nc", "ncat", "netcat", "telnet", "traceroute", "tracepath", "mtr", "whois", "socat", "mosh":
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

// hosts finds the host among the arguments; bare says that the first operand
// is one even without any scheme. An asterisk stands for one not known.
func (c *call) hosts(bare bool) string {
	for _, w := range c.args {
		if !w.known || strings.HasPrefix(w.text, "-") || w.text == "" {
			continue
		}
		if h := hostOf(w.text); h != "" {
			return h
		}
		if at := strings.LastIndexByte(w.text, '@'); bare && strings.ContainsAny(w.text, ".:") {
			return w.text[at+1:]
		}
	}
	return "*"
}
