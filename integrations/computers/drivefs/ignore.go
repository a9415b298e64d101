package main

import (
	"context"
	"io"
	"path"
	"strings"
)

// Names that stay local in every drive, in the syntax of .gitignore.
var defaultRules = parseRules(`node_modules/
.venv/
venv/
__pycache__/
.cache/
.pytest_cache/
.mypy_cache/
target/
.gradle/
.next/
.turbo/
*.swp
*~
.#*
.DS_Store
*-journal
*-wal
*-shm
`)

const (
	ignoreName     = ".driveignore"
	maxIgnoreBytes = 64 << 10
	// Further lines of a .driveignore count for nothing.
	maxRules = 1_000
)

// ignoreRules are those of one .driveignore.
type ignoreRules struct {
	key   string // the content that they were read from
	rules []ignoreRule
}

type ignoreRule struct {
	parts      []string // of the path below the folder; "**" stands for any number of folders
	isNegated  bool
	onlyFolder bool
}

func parseRules(text string) *ignoreRules {
	result := &ignoreRules{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		rule := ignoreRule{}
		if strings.HasPrefix(line, "#") {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "!"); ok {
			rule.isNegated, line = true, rest
		}
		if rest, ok := strings.CutSuffix(line, "/"); ok {
			rule.onlyFolder, line = true, rest
		}
		if line == "" {
			continue
		}
		isAnchored := strings.Contains(line, "/")
		line = strings.ReplaceAll(strings.TrimPrefix(line, "/"), "[!", "[^")
		rule.parts = strings.Split(line, "/")
		if !isAnchored {
			rule.parts = append([]string{"**"}, rule.parts...)
		}
		result.rules = append(result.rules, rule)
		if len(result.rules) == maxRules {
			break
		}
	}
	return result
}

// decide says what the last fitting rule says of a path below the folder. No rule: isDecided is false.
func (r *ignoreRules) decide(parts []string, isFolder bool) (isIgnored, isDecided bool) {
	for at := len(r.rules) - 1; at >= 0; at-- {
		rule := r.rules[at]
		if (isFolder || !rule.onlyFolder) && fits(rule.parts, parts) {
			return !rule.isNegated, true
		}
	}
	return false, false
}

// fits compares a pattern with a path. It goes back to the last "**" only, so that a pattern with many of them takes no
// longer than the product of their lengths.
func fits(pattern, parts []string) bool {
	at, back, tried := 0, -1, 0
	for index := 0; index < len(parts); {
		switch {
		case at < len(pattern) && pattern[at] == "**":
			back, tried = at, index
			at++
			if at == len(pattern) {
				return true
			}
		case at < len(pattern) && isMatch(pattern[at], parts[index]):
			at++
			index++
		case back >= 0:
			tried++
			at, index = back+1, tried
		default:
			return false
		}
	}
	return at == len(pattern)
}

func isMatch(pattern, name string) bool {
	fits, _ := path.Match(pattern, name)
	return fits
}

// isIgnored says whether a new name in a folder of the drive stays local. The rules of a deeper folder go first.
func (d *drive) isIgnored(parent *node, name string, isFolder bool) bool {
	parts := []string{name}
	for folder := parent; folder != nil; {
		if rules := d.rulesOf(folder); rules != nil {
			if isIgnored, isDecided := rules.decide(parts, isFolder); isDecided {
				return isIgnored
			}
		}
		d.mu.Lock()
		parts = append([]string{folder.name}, parts...)
		folder = folder.parent
		d.mu.Unlock()
	}
	isIgnored, _ := defaultRules.decide(parts[1:], isFolder) // without the root, which has no name
	return isIgnored
}

// rulesOf reads a folder's .driveignore, if it has one. One that cannot be read now has the rules that it had.
func (d *drive) rulesOf(folder *node) *ignoreRules {
	d.mu.Lock()
	file := folder.children[keyOf(ignoreName)]
	known := folder.ignore
	if file == nil || !file.isFile() || file.isLocal {
		folder.ignore = nil
		d.mu.Unlock()
		return nil
	}
	key := contentKey(&file.item) + file.modified.String()
	d.mu.Unlock()
	if known != nil && known.key == key {
		return known
	}
	ctx, stop := context.WithTimeout(d.ended, removalPatience)
	defer stop()
	text, err := io.ReadAll(io.NewSectionReader(readerOf{d, ctx, &handle{node: file}}, 0, maxIgnoreBytes))
	if err != nil {
		return known
	}
	rules := parseRules(string(text))
	rules.key = key
	d.mu.Lock()
	defer d.mu.Unlock()
	folder.ignore = rules
	return rules
}

// readerOf reads a file of the drive as a program would.
type readerOf struct {
	drive  *drive
	ctx    context.Context
	handle *handle
}

func (r readerOf) ReadAt(buffer []byte, offset int64) (int, error) {
	return r.drive.readAt(r.ctx.Done(), r.handle, buffer, offset)
}
