package guard

import (
	"regexp"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Level is the potential harm of a call, judging by its effects.
type Level int

// Levels.
const (
	None   Level = iota // it only reads, proven or declared
	Low                 // it changes only files of the workspace
	Medium              // it runs an unproven command
	High                // it reaches beyond the workspace, destroys data, or gains privileges
)

// String returns the level in lower case.
func (l Level) String() string {
	switch l {
	case None:
		return "none"
	case Low:
		return "low"
	case Medium:
		return "medium"
	}
	return "high"
}

// Scale determines the risk of effects, without a model. The zero value is ready; it is safe for concurrent
// use.
type Scale struct {
	once    sync.Once
	pattern *regexp.Regexp // compiled on first use, which takes milliseconds
}

// Risk returns the level of the riskiest effect. Root is the workspace; if it is empty nothing is inside.
// Unknown kinds of effects are High.
func (s *Scale) Risk(root string, effects []tool.Effect) Level {
	m := places.Map{Root: root}.Indexed()
	most := None
	for _, e := range effects {
		level := High
		switch {
		case e.Kind == tool.Read, e.Kind == tool.Execute && e.Class == tool.ProvenRead:
			level = None
		case e.Kind == tool.Write:
			if at := m.Of(e.Path); at.Zone == places.Workspace && at.Guard == places.Plain {
				level = Low
			}
		case e.Kind != tool.Execute, s.destroys(e):
		case e.Class == tool.ProvenInside:
			level = Low
		default:
			level = Medium
		}
		most = max(most, level)
	}
	return most
}

// drastic matches commands that destroy much at once, gain privileges or run content from elsewhere. It is
// deliberately small: other commands are still Medium.
func drastic() string {
	return `(?i)(?:(?:^|[\n;&|(){}!` + "`" + `]\s*|(?:^|\s)(?:env|nohup|time|exec|command|xargs|do|then|else|-\w*c)\s+(?:-\S+\s+)*)(?:\w+=\S*\s+)*(?:\S*/)?(?:` + strings.Join([]string{
		`rm\b[^;&|\n]*\s-(?:-recursive|[a-z]*r)`,
		`git\b[^;&|\n]*\spush\b[^;&|\n]*\s(?:--force|-[a-z]*f|--mirror|--delete|-d\b|--prune|\+\S|:\S)`,
		`git\b[^;&|\n]*\s(?:reset\b[^;&|\n]*\s--hard|clean\b[^;&|\n]*\s(?:-[a-z]*[fx]|--force)|filter-branch|filter-repo|reflog\s+(?:expire|delete)|stash\s+(?:clear|drop)|branch\b[^;&|\n]*\s(?-i:-D)\b|update-ref\b[^;&|\n]*\s-d\b)`,
		`(?:dd|shred|wipefs|blkdiscard|fdisk|parted|mkswap|mkfs(?:\.\w+)?)\s`,
		`(?:chmod|chown|chgrp|chattr|setfacl)\b[^;&|\n]*\s-(?:-recursive|[a-z]*r)`,
		`chmod\b[^;&|\n]*\s(?:[ugoa]*\+[rwx]*s|[0-7]?[2467][0-7]{3}|0?777)\b`,
		`(?:sudo|doas|su|pkexec|run0|setcap|visudo|useradd|usermod|passwd|nsenter|chroot|insmod|modprobe)(?:\s|$)`,
		`(?:shutdown|reboot|halt|poweroff|killall|pkill)(?:\s|$)|kill\s+(?:-\S+\s+)*-1\b`,
		`find\b[^;&|\n]*\s(?:-delete\b|-exec(?:dir)?\s+(?:rm|sh|bash)\b)|xargs\b[^;&|\n]*\s(?:rm|sh|bash)\b`,
		`(?:curl|wget|fetch|base64|xxd|openssl)\b[^\n]*\|\s*(?:\S*/)?(?:ba|z|da|k|fi|a)?sh\b`,
		`(?:curl|wget|base64|xxd)\b[^\n]*\|\s*(?:\S*/)?(?:python|perl|ruby|node)`,
		`(?:ba|z|da|k)?sh\b[^;&|\n]*(?:<\(|\$\()\s*(?:curl|wget)|eval\s[^\n]*(?:curl|wget|base64)`,
		`(?:crontab|systemctl|launchctl|iptables|nft|ufw|mount|umount|sysctl)\s`,
		`(?:docker|podman)\b[^;&|\n]*\s(?:--privileged|system\s+prune|volume\s+(?:rm|prune)|-v\s*/:|--pid[ =]host)`,
		`(?:kubectl|oc)\b[^;&|\n]*\sdelete\b|helm\b[^;&|\n]*\suninstall\b|(?:terraform|tofu|pulumi)\b[^;&|\n]*\s(?:destroy|apply)\b`,
		`(?:npm|pnpm|yarn|cargo|twine|gem)\b[^;&|\n]*\s(?:publish|yank|unpublish|upload)\b`,
		`truncate\s[^;&|\n]*-s|ssh-keygen\b[^;&|\n]*\s-R|history\s+-c`,
	}, "|") + `))|>\s*/dev/(?:sd|nvme|disk|mem)|:\(\)\s*\{|\b(?i:drop\s+(?:table|database|schema)|truncate\s+table)\b`
}

// destroys reports whether a command is drastic, as written or as its program receives it.
func (s *Scale) destroys(e tool.Effect) bool {
	s.once.Do(func() { s.pattern = regexp.MustCompile(drastic()) })
	bare := strings.NewReplacer(`\`, "", `'`, "", `"`, "", "${IFS}", " ", "$IFS", " ").Replace(e.Text)
	return s.pattern.MatchString(e.Text) || s.pattern.MatchString(bare) ||
		e.Words != nil && s.pattern.MatchString(strings.Join(e.Words.Argv, " "))
}
