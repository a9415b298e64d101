package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

var octal = regexp.MustCompile(`\\\d{3}`)

// refuseKept refuses the home, a mount point, and a folder that contains one of them, however the path is spelled. All
// that deletes, moves or replaces a path calls this before it changes anything, for its source and for its target.
// Without the check `rm` and `mv` would empty such a folder before they fail.
func refuseKept(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOENT) || err == nil && info.Mode()&os.ModeSymlink != 0 {
		return nil // the link itself is changed, and its target stays
	}
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	kept := []string{home}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			kept = append(kept, octal.ReplaceAllStringFunc(fields[4], func(escape string) string {
				value, _ := strconv.ParseUint(escape[1:], 8, 8)
				return string([]byte{byte(value)})
			}))
		}
	}
	for _, each := range kept {
		if real == "/" || each == real || strings.HasPrefix(each, real+"/") {
			return refusal("FILE_ACCESS_DENIED")
		}
	}
	return nil
}
