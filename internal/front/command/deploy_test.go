package command

import (
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// deployment is the description of the server in one file of the folder deploy.
type deployment struct {
	args  []string
	grace string // that it gets to end
	home  string // where it keeps what it knows
	user  string
}

// pod is a part of a manifest of Kubernetes.
type pod struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				Grace    string `yaml:"terminationGracePeriodSeconds"`
				Security struct {
					RunAsUser string `yaml:"runAsUser"`
				} `yaml:"securityContext"`

				Containers []struct {
					Args  []string
					Ports []struct {
						ContainerPort string `yaml:"containerPort"`
					}
					Ready  probe `yaml:"readinessProbe"`
					Live   probe `yaml:"livenessProbe"`
					Mounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func (p *pod) deployment(t *testing.T) (d deployment) {
	s := p.Spec.Template.Spec
	c := s.Containers[0]
	if c.Ready.HTTPGet.Path != "/readyz" || c.Live.HTTPGet.Path != "/ping" || c.Ports[0].ContainerPort != "8080" {
		t.Errorf("probes and ports: %+v", c)
	}
	d = deployment{args: c.Args, grace: s.Grace + "s", user: s.Security.RunAsUser}
	for _, m := range c.Mounts {
		if m.Name == "home" {
			d.home = m.MountPath
		}
	}
	return d
}

// deployed reads a file of the folder deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// matched is the match of a pattern's first group.
func matched(t *testing.T, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("nothing is like %s", pattern)
	}
	return m[1]
}

// TestDeploy checks that the files in the folder deploy fit the command and the image: flags exist, running calls have
// time to finish, lasting data is on a volume, and the health check asks at the address of the server.
func TestDeploy(t *testing.T) {
	image, unit := deployed(t, "Dockerfile"), deployed(t, "deploy/inspan.service")
	var compose struct {
		Services map[string]struct {
			Command []string
			User    string
			Grace   string `yaml:"stop_grace_period"`
			Volumes []string
			Ports   []string
			Read    bool `yaml:"read_only"`
		}
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "deploy/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	c := compose.Services["inspan"]
	_, volume, _ := strings.Cut(c.Volumes[0], ":")
	user, _, _ := strings.Cut(c.User, ":")
	all := map[string]deployment{
		"inspan.service": {
			args: strings.Fields(matched(t, unit, `^ExecStart=/usr/bin/inspan (.*)$`)), grace: matched(t, unit, `^TimeoutStopSec=(.*)$`) + "s",
			home: matched(t, unit, `^Environment=HOME=(.*)$`),
		},
		"compose.yaml": {args: c.Command, grace: c.Grace, home: volume, user: user},
	}
	docs := yaml.NewDecoder(strings.NewReader(deployed(t, "deploy/kubernetes.yaml")))
	var p pod
	for p = (pod{}); p.Kind != "StatefulSet"; {
		p = pod{}
		if err := docs.Decode(&p); err != nil {
			t.Fatal(err)
		}
	}
	all["kubernetes.yaml"] = p.deployment(t)

	code, help, _ := prints(t, "serve", "--help")
	if code != 0 {
		t.Fatal(help)
	}
	port := matched(t, image, `/dev/tcp/127.0.0.1/(\d+) `)
	for name, d := range all {
		var listen, drain string
		for i, arg := range d.args[1:] {
			flag, value, joined := strings.Cut(arg, "=")
			if !joined && i+2 < len(d.args) {
				value = d.args[i+2]
			}
			switch {
			case !strings.HasPrefix(arg, "--"):
			case !regexp.MustCompile(`(?m)^ +` + flag + `[ \n]`).MatchString(help):
				t.Errorf("%s: inspan serve has no flag %s", name, flag)
			case flag == "--listen":
				listen = value
			case flag == "--drain":
				drain = value
			}
		}
		patient, err := time.ParseDuration(drain)
		grace, bad := time.ParseDuration(d.grace)
		if err != nil || bad != nil || grace < patient+15*time.Second {
			t.Errorf("%s: calls get %q to finish, and the server %q to end", name, drain, d.grace)
		}
		if d.args[0] != "serve" || !strings.HasSuffix(listen, ":"+port) {
			t.Errorf("%s: it runs %q", name, d.args)
		}
		if name == "inspan.service" {
			continue
		}
		if d.home != matched(t, image, `^ENV HOME=(.*)$`) || d.user != matched(t, image, `^USER (\d+):`) || !slices.Contains(d.args, "--public") {
			t.Errorf("%s does not fit the Dockerfile: %+v", name, d)
		}
	}
	if !c.Read || !slices.Contains(c.Ports, "127.0.0.1:"+port+":"+port) {
		t.Errorf("compose.yaml: %+v", c)
	}
	if "/var/lib/"+matched(t, unit, `^StateDirectory=(.*)$`) != all["inspan.service"].home {
		t.Error("inspan.service: what is kept lies elsewhere")
	}
	for _, fatal := range []string{
		"RestrictNamespaces=yes", "RestrictSUIDSGID=", "DynamicUser=", "SystemCallFilter=@", "ProtectHostname=", "ProtectKernelLogs=", "ProtectKernelTunables=",
	} {
		if strings.Contains("\n"+unit, "\n"+fatal) {
			t.Errorf("inspan.service: the sandbox can't be built with %s", fatal)
		}
	}
}

// TestDeployCluster checks that the parts of the manifest of several servers fit each other and the command.
func TestDeployCluster(t *testing.T) {
	text := deployed(t, "deploy/cluster-kubernetes.yaml")
	_, help, _ := prints(t, "serve", "--help")
	parts := map[string]map[string]any{}
	for docs := yaml.NewDecoder(strings.NewReader(text)); ; {
		var part struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     map[string]any
		}
		if err := docs.Decode(&part); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		parts[part.Kind+" "+part.Metadata.Name] = part.Spec
	}
	args := map[string][]string{}
	for docs := yaml.NewDecoder(strings.NewReader(text)); len(args) < 2; {
		var p pod
		if err := docs.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Kind != "Deployment" {
			continue
		}
		s := p.Spec.Template.Spec
		c := s.Containers[0]
		only := matched(t, strings.Join(c.Args, "\n"), `^--only=(.*)$`)
		args[only] = c.Args
		for _, arg := range c.Args[1:] {
			if flag, _, _ := strings.Cut(arg, "="); !regexp.MustCompile(`(?m)^ +` + flag + `[ \n]`).MatchString(help) {
				t.Errorf("%s: inspan serve has no flag %s", only, flag)
			}
		}
		drain, err := time.ParseDuration(matched(t, strings.Join(c.Args, "\n"), `^--drain=(.*)$`))
		grace, bad := time.ParseDuration(s.Grace + "s")
		if err != nil || bad != nil || grace < drain+15*time.Second {
			t.Errorf("%s: calls get %s to finish, and the pod %s to end", only, drain, grace)
		}
	}
	if parts["Service inspan"]["publishNotReadyAddresses"] != nil {
		t.Error("clients are sent to servers that are not ready, while others are")
	}
	if parts["Deployment inspan-worker"]["replicas"] != nil {
		t.Error("the number of workers is KEDA's, and would be reset")
	}
	each, err := strconv.Atoi(matched(t, text, `^ +targetValue: "(\d+)"`))
	most, bad := strconv.Atoi(matched(t, strings.Join(args["api"], "\n"), `^--at-once=(.*)$`))
	if err != nil || bad != nil || parts["ScaledObject inspan-worker"]["maxReplicaCount"] != most/each {
		t.Errorf("at most %v workers, for %d tasks, %d each", parts["ScaledObject inspan-worker"]["maxReplicaCount"], most, each)
	}
	host := strings.Replace(matched(t, text, `^ +url: http://([^/]*)/metrics$`), ".default", ".$(NAMESPACE)", 1)
	if !slices.Contains(args["api"], "--host="+host) {
		t.Errorf("the servers don't answer to %s", host)
	}
}
