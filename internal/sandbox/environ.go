package sandbox

import (
	"regexp"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/secret"
)

// userInfo matches a password inside a URL.
var userInfo = regexp.MustCompile(`://[^/\s]*@`)

// environ makes the default environment of a process from ours: what programs
// need to find their files and toolchains, and settings that keep them from
// asking questions, paging and drawing. Everything else, agents' sockets
// included, stays behind, unless it passes or is among more.
func environ(ours, more []string, passes func(name string) bool) []string {
	env := []string{
		"TERM=dumb", "NO_COLOR=1",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
		"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true",
		"GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never",
		"DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1", "PYTHONUNBUFFERED=1",
	}
	for _, kv := range ours {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(more, name) || passes(name) && !secret.Named(name) && !userInfo.MatchString(value) {
			env = append(env, kv)
		}
	}
	slices.Sort(env)
	return env
}

// passesOnboard is passesOn for containers, where the image says where things
// are.
func passesOnboard(name string) bool {
	return strings.HasPrefix(name, "LC_") || slices.Contains([]string{"LANG", "LANGUAGE", "TZ", "CI"}, name)
}

// passesOn reports whether a variable is on the list.
func passesOn(name string) bool {
	for _, prefix := range []string{"LC_", "XDG_", "CONDA_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "CI",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
		"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOENV", "GOFLAGS", "GOPROXY", "GOPRIVATE",
		"GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "GOWORK", "GOMAXPROCS", "GOEXPERIMENT",
		"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN",
		"NVM_DIR", "NODE_PATH", "NODE_OPTIONS", "NPM_CONFIG_PREFIX", "npm_config_cache", "PNPM_HOME", "VOLTA_HOME",
		"BUN_INSTALL", "DENO_DIR", "FNM_DIR", "COREPACK_HOME",
		"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYENV_ROOT", "PIPX_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR", "POETRY_HOME",
		"JAVA_HOME", "M2_HOME", "MAVEN_HOME", "MAVEN_OPTS", "GRADLE_HOME", "GRADLE_USER_HOME", "SDKMAN_DIR", "ANDROID_HOME", "ANDROID_SDK_ROOT",
		"GEM_HOME", "GEM_PATH", "RBENV_ROOT", "BUNDLE_PATH", "DOTNET_ROOT", "NUGET_PACKAGES", "COMPOSER_HOME", "GHCUP_INSTALL_BASE_PREFIX",
		"ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "HOMEBREW_PREFIX", "NIX_PATH", "NIX_PROFILES",
		"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
		"PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "MAKEFLAGS", "CUDA_HOME", "CUDA_VISIBLE_DEVICES":
		return true
	}
	return false
}
