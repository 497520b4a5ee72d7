package lsp_test

import (
	"testing"
	"time"
)

func TestTypeScript(t *testing.T) {
	p := newProject(t, server(t, "typescript-language-server", typescript(t)), map[string]string{
		"tsconfig.json": `{"compilerOptions":{"strict":true},"include":["*.ts"]}`,
		"total.ts":      "/* 😀語 */ export function total(n: number): string { return '語'.repeat(n) }\n",
		"shop.ts":       "import { total } from './total'\n\nexport const a = '😀' + total(1)\nexport const b: number = total(2)\n",
	})
	path, at := p.at("shop.ts", "total(1)")
	found, err := p.Definition(t.Context(), path, at)
	if err != nil || p.places(found.List) != "total.ts:0:30-35" {
		t.Errorf("definition %s, %v", p.places(found.List), err)
	}
	found, err = p.References(t.Context(), path, at)
	if want := "shop.ts:0:9-14 shop.ts:2:26-31 shop.ts:3:25-30 total.ts:0:30-35"; err != nil || p.places(found.List) != want {
		t.Errorf("references %s, %v; want %s", p.places(found.List), err, want)
	}
	r, err := p.Diagnostics(t.Context(), path, 20*time.Second)
	if err != nil || !r.Settled || len(r.List) != 1 || r.List[0].Location.Start.Line != 3 || r.List[0].Code != "2322" {
		t.Errorf("diagnostics %+v, %v", r, err)
	}
	p.put("shop.ts", "import { total } from './total'\n\nexport const a = '😀' + total(1)\n")
	if r, err = p.Diagnostics(t.Context(), path, 20*time.Second); err != nil || !r.Settled || len(r.List) != 0 {
		t.Errorf("diagnostics when mended %+v, %v", r, err)
	}
	edits, err := p.Rename(t.Context(), path, at, "sum")
	if err != nil || len(edits) != 2 || edits[0].After != "import { sum } from './total'\n\nexport const a = '😀' + sum(1)\n" {
		t.Errorf("rename %+v, %v", edits, err)
	}
}
