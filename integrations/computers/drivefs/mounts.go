package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// unmountDead removes mounts of ours from a folder: those of a process that was killed.
func unmountDead(target string) error {
	for isMounted(target) {
		if err := unmountLazily(target); err != nil {
			return err
		}
	}
	return nil
}

func isMounted(target string) bool {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(target)
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && fields[4] == escaped && strings.Contains(line, " - fuse.atrium ") {
			return true
		}
	}
	return false
}

// unmountLazily takes a mount away although programs may use it. They keep what they have open.
func unmountLazily(target string) error {
	err := syscall.Unmount(target, syscall.MNT_DETACH)
	if err == nil || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	output, failure := exec.Command("fusermount3", "-u", "-z", target).CombinedOutput()
	if failure != nil && isMounted(target) { // else somebody else took it away
		return fmt.Errorf("unmount: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
