package check

import (
	"fmt"
	"strings"
)

// Page is the documentation of a check, as docs/findings holds it and doctor --explain prints it.
func Page(c Check) string {
	var needs []string
	for _, n := range c.Needs {
		needs = append(needs, string(n))
	}
	return fmt.Sprintf(`# %s

%s: %s.

Severity: %s. Needs: %s.

## What it means
%s

## How it comes about
%s

## How to fix it
%s
`, c.ID, "Finding", c.Summary, c.Severity, strings.Join(needs, ", "), c.Means, c.Causes, c.Remedy)
}

// IndexPage lists all pages.
func IndexPage() string {
	var b strings.Builder
	b.WriteString(`# Findings of kctl doctor

Every finding has a stable id. ` + "`kctl doctor --list`" + ` prints this list with what each check needs, ` + "`kctl doctor --explain ID`" + ` a page. The pages
are made from package admin/check (` + "`go test ./admin/check -run TestPages -update`" + `).

| id | severity | meaning |
|---|---|---|
`)
	for _, c := range Checks() {
		fmt.Fprintf(&b, "| [`%s`](%s.md) | %s | %s |\n", c.ID, c.ID, c.Severity, c.Summary)
	}
	return b.String()
}
