package setup

import "path/filepath"

// cursor lists Cursor's rules in a folder.
func (i *Import) cursor() {
	i.folder(Used, filepath.Join(i.root, ".cursor", "rules"), ".mdc", "file", "instructions of this folder, but for those that a person picks")
	i.used(filepath.Join(i.root, ".cursorrules"), "instructions of this folder")
}

// copilot lists GitHub Copilot's instructions in a folder.
func (i *Import) copilot() {
	i.used(filepath.Join(i.root, ".github", "copilot-instructions.md"), "instructions of this folder")
	i.folder(Used, filepath.Join(i.root, ".github", "instructions"), ".instructions.md", "file", "instructions of this folder, if they have applyTo")
}
