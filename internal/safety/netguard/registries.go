package netguard

import "net/http"

// Registries are the hosts that package managers fetch from, public and well known.
func Registries() Hosts {
	return append(Unseen(),
		"registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org", "jsr.io", "npm.jsr.io", "deno.land", // JavaScript
		"pypi.org", "files.pythonhosted.org", // Python
		"proxy.golang.org", "sum.golang.org", "go.dev", // Go
		"index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org", // Rust
		"rubygems.org", "index.rubygems.org", // Ruby
		"api.nuget.org", "www.nuget.org", // .NET
		"repo.packagist.org",                                                                             // PHP
		"hex.pm", "repo.hex.pm", "builds.hex.pm", "hackage.haskell.org", "pub.dev", "cran.r-project.org", // others
		"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com", // systems
		"dl-cdn.alpinelinux.org", "mirrors.fedoraproject.org", "dl.fedoraproject.org", "conda.anaconda.org", "repo.anaconda.com")
}

// Unseen are those of Java, whose programs trust no certificate that a variable names, so that the inside of what they send
// can't be seen. Nothing is published there.
func Unseen() Hosts {
	return Hosts{"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "plugins-artifacts.gradle.org", "services.gradle.org"}
}

// reads reports whether a request only fetches, as package managers do to install.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
