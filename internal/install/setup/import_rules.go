package setup

import "path/filepath"

// notRead is why editor rules are not imported.
const notRead = "inspan doesn't read rules of this kind; import each file in AGENTS.md with a line such as @docs/style.md, or move its text there"

// cursor lists Cursor's rules in a folder.
func (i *Import) cursor() {
	i.folder(Ignored, filepath.Join(i.root, ".cursor", "rules"), ".mdc", "file", notRead)
	if path := filepath.Join(i.root, ".cursorrules"); exists(path) {
		i.ignored(path, "", notRead)
	}
}

// copilot lists GitHub Copilot's instructions in a folder.
func (i *Import) copilot() {
	if path := filepath.Join(i.root, ".github", "copilot-instructions.md"); exists(path) {
		i.ignored(path, "", notRead)
	}
	i.folder(Ignored, filepath.Join(i.root, ".github", "instructions"), ".instructions.md", "file", notRead)
}
