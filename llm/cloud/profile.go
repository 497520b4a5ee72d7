package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
)

// localAWS returns the credentials of this machine: AWS_BEARER_TOKEN_BEDROCK; else AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else the keys of the profile AWS_PROFILE, or "default", in
// ~/.aws/credentials or ~/.aws/config, or in the files that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name.
// Everything is read again each time, so that keys renewed by other programs are found. For a profile that only
// describes how to get keys (SSO, roles, processes) it returns an error that says so.
func localAWS(context.Context) (Credentials, error) {
	if token := os.Getenv("AWS_BEARER_TOKEN_BEDROCK"); token != "" {
		return Credentials{Bearer: token}, nil
	}
	c := Credentials{
		AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Session: os.Getenv("AWS_SESSION_TOKEN"),
	}
	if c.AccessKey != "" && c.SecretKey != "" {
		return c, nil
	}
	return profile(cmp.Or(os.Getenv("AWS_PROFILE"), "default"))
}

// profile returns the keys of a profile. The credentials file takes precedence over the config file, where the
// names of all profiles except the default begin with "profile".
func profile(name string) (Credentials, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Credentials{}, fmt.Errorf("find home folder: %w", err)
	}
	heading := name
	if name != "default" {
		heading = "profile " + name
	}
	found := false
	for _, at := range []struct{ file, heading string }{
		{cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")), name},
		{cmp.Or(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")), heading},
	} {
		set, err := section(at.file, at.heading)
		if err != nil {
			return Credentials{}, err
		}
		found = found || set != nil
		c := Credentials{AccessKey: set["aws_access_key_id"], SecretKey: set["aws_secret_access_key"], Session: set["aws_session_token"]}
		if c.AccessKey != "" && c.SecretKey != "" {
			return c, nil
		}
	}
	if found {
		return Credentials{}, fmt.Errorf("the profile %q holds no keys; 'aws configure export-credentials --format env' prints them", name)
	}
	return Credentials{}, fmt.Errorf("neither AWS_ACCESS_KEY_ID nor a profile %q is there", name)
}

// section returns the settings under a heading of a file, nil if the heading or the file does not exist. Indented
// lines are nested settings and are skipped.
func section(file, heading string) (map[string]string, error) {
	text, err := keep.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read AWS profile: %w", err)
	}
	var set map[string]string
	inside := false
	for line := range strings.Lines(string(text)) {
		if name, ok := headingOf(line); ok {
			inside = name == heading
			if inside && set == nil {
				set = map[string]string{}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !inside || strings.ContainsAny(line[:1], " \t#;") {
			continue
		}
		set[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(uncomment(value))
	}
	return set, nil
}

// headingOf returns the name in "[name]".
func headingOf(line string) (string, bool) {
	line = strings.TrimSpace(uncomment(line))
	if !strings.HasPrefix(line, "[") || !strings.HasSuffix(line, "]") {
		return "", false
	}
	return strings.Join(strings.Fields(line[1:len(line)-1]), " "), true
}

// uncomment removes a comment, which begins after white space.
func uncomment(s string) string {
	for _, mark := range []string{" #", " ;", "\t#", "\t;"} {
		s, _, _ = strings.Cut(s, mark)
	}
	return s
}
