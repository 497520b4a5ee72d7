package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// IsName reports whether a text is a valid name of a shell variable.
func IsName(name string) bool {
	return spelled(name, letters+"_", letters+numbers+"_", len(name))
}

// Steers reports whether a variable of a person's environment makes programs run code, or changes the meaning
// of words for shells and git, so that a verdict on the words would not hold. It covers whole families of
// programs: the loader, shells and git.
func Steers(name string) bool {
	for _, prefix := range []string{
		"BASH_FUNC_", "GIT_CONFIG", "GIT_ATTR_",
		"GIT_TRACE", "GIT_INTERNAL_", "DYLD_INSERT_", "DYLD_FORCE_", "INSPAN_",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"LD_PRELOAD", "LD_AUDIT", "LD_DEBUG", "LD_DEBUG_OUTPUT", "LD_PROFILE", "GCONV_PATH",
		"BASH_ENV", "ENV", "ZDOTDIR", "PROMPT_COMMAND", "PS0", "PS4", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "CDPATH", "GLOBIGNORE", "IFS",
		"POSIXLY_CORRECT",
		"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
		"GIT_REPLACE_REF_BASE", "GIT_QUARANTINE_PATH", "GIT_PREFIX", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR",
		"GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR",
	}, name)
}

// readVariable reports whether readers, and git that writes its repository, inherit a variable from earlier
// commands or from the person. Others can make a program do more than its words say.
func readVariable(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	if strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") {
		return true
	}
	for _, prefix := range []string{
		"BASH", "GIT_", "LD_", "DYLD_", "LESS", "RIPGREP_", "PERL", "PYTHON", "RUBY", "NODE_", "JAVA_", "AWK",
		"GAWK", "GCONV", "LOCPATH", "JQ_", "YQ_", "FD_", "EXA_", "BAT_",
	} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	if strings.HasSuffix(name, "_OPTIONS") || strings.HasSuffix(name, "OPTS") {
		return false
	}
	return !slices.Contains([]string{
		"ENV", "CDPATH", "IFS", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "PAGER", "MANPAGER", "EDITOR",
		"VISUAL", "SSH_ASKPASS", "TMPDIR", "POSIXLY_CORRECT", "GLOBIGNORE", "TERMINFO",
	}, name)
}

// ReadEnvironment returns the part of an environment for commands that are proven to read, and for git that
// writes its repository. Nil stays nil.
func ReadEnvironment(env []string, root string) []string {
	var out []string
	for _, kv := range env {
		if !readVariable(kv) {
			continue
		}
		if dirs, ok := strings.CutPrefix(kv, "PATH="); ok {
			kv = "PATH=" + strings.Join(slices.DeleteFunc(filepath.SplitList(dirs), func(dir string) bool {
				return !filepath.IsAbs(dir) || text.Inside(root, filepath.Clean(dir))
			}), string(filepath.ListSeparator))
		}
		out = append(out, kv)
	}
	return out
}

// Inherited returns the changes of the environment by earlier commands that reach commands proven to read, and
// git that writes its repository. The location of a program's settings is itself excluded: a command could have
// written them.
func Inherited(changes []string, root string) []string {
	out := ReadEnvironment(changes, root)
	out = slices.DeleteFunc(out, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return configures(name)
	})
	for i, kv := range out {
		if dirs, ok := strings.CutPrefix(kv, "PATH="); ok {
			out[i] = "PATH=" + strings.Join(slices.DeleteFunc(filepath.SplitList(dirs), func(dir string) bool {
				return text.Inside("/tmp", filepath.Clean(dir)) || text.Inside("/var/tmp", filepath.Clean(dir))
			}), string(filepath.ListSeparator))
		}
	}
	return out
}

// configures reports whether a variable names the settings, parts or data of a program that is proven to read.
func configures(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{
		"XDG_", "GO", "CARGO_", "RUST", "DOCKER_", "CONTAINER_",
		"DPKG_", "GCC_", "LUA", "PHP", "OPENSSL_", "NPM_CONFIG_", "XZ_", "ZSTD_", "RES_",
	} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	for _, suffix := range []string{
		"HOME", "_CONFIG", "_CONFIG_DIR", "_CONFIG_FILE", "_CONFIG_PATH",
		"CONFIG", "_CONF", "RC", "FLAGS", "_OPT", "_DATADIR", "_PLUGINS", "_EXTENSIONS",
	} {
		if strings.HasSuffix(upper, suffix) {
			return true
		}
	}
	return slices.Contains([]string{
		"COMPILER_PATH", "LIBRARY_PATH", "CPATH", "MAGIC", "MANPATH", "INFOPATH", "ZIP", "UNZIP", "ZIPINFO", "GZIP", "BZIP", "BZIP2",
		"HOSTALIASES", "LOCALDOMAIN", "NLSPATH", "TEXTDOMAINDIR", "USERPROFILE",
	}, upper)
}

// setsHome reports whether a text may set HOME: it uses the name other than for its value. Scripts that it runs
// are not examined.
func setsHome(text string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], "HOME")
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len("HOME")
		at = to
		whole := (to == len(text) || !variably("a"+text[to:to+1])) && (from == 0 || !variably("a"+text[from-1:from]))
		taken := from > 0 && text[from-1] == '$' || from > 1 && text[from-2:from] == "${" &&
			!strings.HasPrefix(text[to:], "=") && !strings.HasPrefix(text[to:], ":=")
		if whole && !taken {
			return true
		}
	}
}
