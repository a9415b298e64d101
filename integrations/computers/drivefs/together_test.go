package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSmallFilesAreSentTogetherAndTheRefusalOfOneIsItsOwn(t *testing.T) {
	w := mounted(t)
	w.set(func() {
		w.refuse = func(r *http.Request) int {
			return map[bool]int{true: 503}[r.URL.Query().Get("name") == "refused" && r.Method == "PUT"]
		}
	})
	const files = 200
	for number := range files {
		w.save(fmt.Sprintf("file-%03d", number), fmt.Sprint("text of ", number))
	}
	w.save("refused", "later")
	w.save("large", strings.Repeat("x", maxTogetherBytes+1))
	w.until("all but one are on the drive", func() bool {
		w.control("POST", "/mounts/"+testComputer+"/sync", map[string]any{"timeoutMs": 100})
		return len(w.in(rootID)) == files+1
	})
	for number := range files {
		w.expectOnDrive(fmt.Sprintf("file-%03d", number), fmt.Sprint("text of ", number))
	}
	w.set(func() {
		w.refuse = nil
		if most := slices.Max(w.together); most < 2 || most > maxTogetherFiles {
			t.Errorf("the largest request has %d files", most)
		}
	})
	w.sync()
	w.expectOnDrive("refused", "later")
	w.expectOnDrive("large", strings.Repeat("x", maxTogetherBytes+1))
}

func TestAKillWhileFilesAreSentTogetherLosesAndDoublesNothing(t *testing.T) {
	w := mounted(t)
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	const files = 100
	for number := range files {
		w.save(fmt.Sprintf("file-%03d", number), fmt.Sprint("text of ", number))
	}
	w.kill()
	w.set(func() { w.paused = nil })
	close(release) // some of what the killed program has sent arrives now
	w.start()
	w.mount(testComputer, testSpace, w.path)
	w.sync()
	if names := len(w.in(rootID)); names != files {
		t.Errorf("the drive has %d files", names)
	}
	for number := range files {
		w.expectOnDrive(fmt.Sprintf("file-%03d", number), fmt.Sprint("text of ", number))
	}
	if left, _ := filepath.Glob(w.dir + "/stage/" + testComputer + "/*"); len(left) > 0 {
		t.Errorf("the journal has %v", left)
	}
}

func TestARefreshBringsWhatHasChangedBefore(t *testing.T) {
	w := mounted(t)
	w.write("file", "one")
	w.expect("file", "one")
	if names := namesIn(t, w.path); names != "file" {
		t.Fatalf("the names are %s", names)
	}
	for round := range 20 {
		text := fmt.Sprint("content ", round)
		w.write("file", text)
		w.write(fmt.Sprint("new-", round), text)
		if status, _ := ask(w.path+".sync", "POST", "/refresh", nil); status != 204 {
			t.Fatalf("the refresh answers %d", status)
		}
		w.expect("file", text)
		w.expect(fmt.Sprint("new-", round), text)
	}
}

func TestARefreshWithoutAWorkerEnds(t *testing.T) {
	w := mounted(t)
	w.away()
	if status, _ := ask(w.path+".sync", "POST", "/refresh", nil); status != 204 {
		t.Errorf("the refresh answers %d", status)
	}
}

func TestARestoredDatabaseIsListedAgain(t *testing.T) {
	w := mounted(t)
	w.write("folder/file", "new")
	w.write("later", "text")
	w.expect("folder/file", "new")
	w.expect("later", "text")
	w.set(func() { // as the backup was: older, and with as high a revision
		w.named(rootID, "later").Live = false
		file := w.named(w.named(rootID, "folder").ID, "file")
		file.content, file.Size, file.Sha256, file.Version = []byte("old"), 3, "", 7
		file.Revision = 1
		w.epoch = "ins_2"
	})
	w.until("the file is as it was", func() bool { return w.read("folder/file") == "old" })
	if names := namesIn(t, w.path); names != "folder" {
		t.Errorf("the names are %s", names)
	}
}

func TestAFolderThatIsRemovedFileByFileSaysSo(t *testing.T) {
	w := mounted(t)
	w.write("top/sub/file", "text")
	w.write("other/file", "text")
	before := time.Now().UnixMilli()
	must(t, os.RemoveAll(w.at("top")))
	w.expect("other/file", "text")
	w.set(func() { w.named(w.named(rootID, "other").ID, "file").Live = false })
	w.set(func() { w.resets = true })
	w.until("the other folder is empty", func() bool { return namesIn(t, w.at("other")) == "" })
	must(t, os.Remove(w.at("other")))
	w.set(func() {
		for _, name := range []string{"top", "sub"} {
			if w.since[name] < before || w.since[name] > time.Now().UnixMilli() {
				t.Errorf("the files of %s were removed since %d", name, w.since[name])
			}
		}
		if since := w.since["other"]; since != 0 {
			t.Errorf("the files of the other folder were removed here since %d", since)
		}
	})
}

func TestAProgramThatAppendsAfterAKillFollowsWhatWasLeft(t *testing.T) {
	w := mounted(t)
	w.write("log", "one\n")
	appendTo := func(text string) error {
		file, err := os.OpenFile(w.at("log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		return errors.Join(err, file.Close())
	}
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	must(t, appendTo("two\n"))
	w.save("new", "text")
	w.kill()
	w.start()
	w.mount(testComputer, testSpace, w.path) // does not wait for long
	listed := w.count("GET /children")
	done := make(chan error, 1)
	go func() { done <- appendTo("three\n") }()
	w.until("the program looks for the file", func() bool { return w.count("GET /children") > listed })
	w.set(func() { w.paused = nil })
	close(release)
	must(t, <-done)
	w.expect("new", "text")
	w.expect("log", "one\ntwo\nthree\n")
	w.sync()
	w.expectOnDrive("log", "one\ntwo\nthree\n")
	if names := namesIn(t, w.path); names != "log new" {
		t.Errorf("the names are %s", names)
	}
}

func TestALaterContentFollowsOneWhoseAnswerWasLost(t *testing.T) {
	w := mounted(t)
	w.write("file", "one")
	w.expect("file", "one")
	release := make(chan struct{})
	w.set(func() { w.paused, w.losesAnswers = release, true })
	w.save("file", "two")
	w.until("it is being sent", func() (isSent bool) {
		w.set(func() { isSent = w.puttings > 0 })
		return isSent
	})
	w.save("file", "three")
	w.set(func() { w.paused = nil })
	close(release)
	w.until("the answer was lost", func() bool { return w.content("file") == "two" })
	w.set(func() { w.losesAnswers = false })
	w.sync()
	w.expectOnDrive("file", "three")
	if names := namesIn(t, w.path); names != "file" {
		t.Errorf("the names are %s", names)
	}
}

func TestFilesOfSomebodyWhoMayNotChangeTheDriveAnyMoreAreInTheHome(t *testing.T) {
	w := mounted(t, "--aside-after", "10ms")
	w.write("old.txt", "on the drive")
	w.expect("old.txt", "on the drive")
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	w.save("old.txt", "changed")
	w.save("new.txt", "made")
	must(t, os.WriteFile(w.at("run.sh"), []byte("#!/bin/sh"), 0o755))
	must(t, os.MkdirAll(w.path+".unsent", 0o755))
	must(t, os.Symlink("/etc/passwd", w.path+".unsent/new.txt")) // by a program of the computer
	w.set(func() { w.access, w.paused = "read", nil })
	close(release)
	aside := func(name string) string {
		text, _ := os.ReadFile(w.path + ".unsent/" + name)
		return string(text)
	}
	w.until("they are in the home", func() bool {
		return aside("old.txt") == "changed" && aside("new (2).txt") == "made" && aside("run.sh") != ""
	})
	w.expect("old.txt", "on the drive")
	w.until("the drive is as it was", func() bool { return namesIn(t, w.path) == "old.txt" })
	info, err := os.Stat(w.path + ".unsent/run.sh")
	must(t, err)
	if info.Mode().Perm() != 0o755 {
		t.Errorf("the program is %v", info.Mode())
	}
	w.until("the state says so", func() bool {
		_, state := w.control("GET", "/", nil)
		mount := state["mounts"].([]any)[0].(map[string]any)
		notice, _ := mount["error"].(string)
		return mount["pendingFiles"] == 0.0 && strings.HasPrefix(notice, "3 files are not in the drive")
	})
	_, err = os.Lstat(w.at("new.txt"))
	expectError(t, err, syscall.ENOENT)
}

func TestSomebodyWhoMayChangeTheDriveAgainLosesNothing(t *testing.T) {
	w := mounted(t)
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	w.save("file", "text")
	w.set(func() { w.access, w.paused = "read", nil })
	close(release)
	w.until("the file is not shown", func() bool { return namesIn(t, w.path) == "" })
	w.set(func() { w.access = "write" })
	w.until("the file is on the drive", func() bool { return w.content("file") == "text" })
	w.expect("file", "text")
}
