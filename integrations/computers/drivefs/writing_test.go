package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWhatIsWrittenIsOnTheDriveAfterASync(t *testing.T) {
	w := mounted(t)
	must(t, os.MkdirAll(w.at("a/b"), 0o755))
	w.save("a/b/file.txt", "written")
	must(t, os.Symlink("file.txt", w.at("a/b/link")))
	must(t, os.WriteFile(w.at("run.sh"), []byte("#!/bin/sh\n"), 0o755))
	w.sync()
	w.expectOnDrive("a/b/file.txt", "written")
	if link := w.find("a/b/link"); link == nil || link.Target != "file.txt" {
		t.Errorf("the link is %v", link)
	}
	if !w.find("run.sh").Executable {
		t.Error("the program is not executable on the drive")
	}
	w.expect("a/b/link", "written")
	// The computer's own socket does the same, and nothing else.
	w.save("a/b/file.txt", "again")
	if status, _ := ask(w.path+".sync", "POST", "/sync", map[string]any{"timeoutMs": 10_000}); status != 200 {
		t.Errorf("the computer's sync answers %d", status)
	}
	w.expectOnDrive("a/b/file.txt", "again")
	if status, _ := ask(w.path+".sync", "GET", "/", nil); status != 404 {
		t.Errorf("the computer's socket answers %d to another request", status)
	}
}

func TestATemporaryFileThatIsRenamedIsTheNextVersion(t *testing.T) {
	w := mounted(t)
	before := w.write("report.md", "first")
	w.expect("report.md", "first")
	w.save("report.md.tmp", "second")
	must(t, os.Rename(w.at("report.md.tmp"), w.at("report.md")))
	w.expect("report.md", "second")
	w.sync()
	after := w.find("report.md")
	if after == nil || after.ID != before.ID || after.Version != 2 || string(after.content) != "second" {
		t.Errorf("the file is %+v", after)
	}
	if w.find("report.md.tmp") != nil || namesIn(t, w.path) != "report.md" {
		t.Error("the temporary name is there")
	}
	w.expect("report.md", "second")
}

func TestATemporaryFileThatWasSyncedIsTheNextVersionToo(t *testing.T) {
	w := mounted(t)
	before := w.write("report.md", "first")
	w.expect("report.md", "first")
	file, err := os.Create(w.at("report.md.tmp"))
	must(t, err)
	_, err = file.WriteString("second")
	must(t, err)
	must(t, file.Sync())
	must(t, file.Close())
	if w.find("report.md.tmp") == nil {
		t.Fatal("the synced file is not on the drive")
	}
	must(t, os.Rename(w.at("report.md.tmp"), w.at("report.md")))
	w.expect("report.md", "second")
	w.save("report.md", "third")
	w.sync()
	after := w.find("report.md")
	if after == nil || after.ID != before.ID || after.Version != 3 || string(after.content) != "third" {
		t.Errorf("the file is %+v", after)
	}
	if w.find("report.md.tmp") != nil || namesIn(t, w.path) != "report.md" {
		t.Error("the temporary name is there")
	}
	w.write("report.md", "fourth")
	w.until("the file is what was written elsewhere", func() bool { return w.read("report.md") == "fourth" })
}

func TestTwoWritersMakeAConflictAndLoseNothing(t *testing.T) {
	w := mounted(t)
	w.write("plan.txt", "one")
	w.expect("plan.txt", "one")
	file, err := os.OpenFile(w.at("plan.txt"), os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString("mine")
	must(t, err)
	w.write("plan.txt", "theirs")
	must(t, file.Close())
	w.sync()
	w.expectOnDrive("plan.txt", "theirs")
	w.expectOnDrive("plan (from computer).txt", "mine")
	w.until("both files are seen", func() bool {
		return namesIn(t, w.path) == "plan (from computer).txt plan.txt" && w.read("plan.txt") == "theirs" &&
			w.read("plan (from computer).txt") == "mine"
	})
}

func TestFsyncReturnsWhenTheFileIsOnTheDrive(t *testing.T) {
	w := mounted(t)
	file, err := os.Create(w.at("file"))
	must(t, err)
	defer file.Close()
	_, err = file.WriteString("durable")
	must(t, err)
	must(t, file.Sync())
	w.expectOnDrive("file", "durable")
}

func TestMemoryMaps(t *testing.T) {
	w := mounted(t)
	w.save("mapped", strings.Repeat("a", 10_000))
	file, err := os.OpenFile(w.at("mapped"), os.O_RDWR, 0)
	must(t, err)
	bytes, err := syscall.Mmap(int(file.Fd()), 0, 10_000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must(t, err)
	copy(bytes[5_000:], "changed")
	must(t, file.Close())
	must(t, syscall.Munmap(bytes))
	w.until("the change is on the drive", func() bool {
		w.sync()
		return strings.Contains(w.content("mapped"), "achangeda")
	})
}

func TestALogThatIsAppendedMakesFewVersions(t *testing.T) {
	w := mounted(t)
	w.write("app.txt", "start\n")
	file, err := os.OpenFile(w.at("app.txt"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	expected := "start\n"
	for line := range 200 {
		text := fmt.Sprintf("line %d\n", line)
		_, err := file.WriteString(text)
		must(t, err)
		expected += text
		if line%50 == 0 {
			w.sync() // as if time had passed
		}
	}
	must(t, file.Close())
	w.sync()
	w.expectOnDrive("app.txt", expected)
	if versions := len(w.find("app.txt").versions); versions != 1 {
		t.Errorf("there are %d old versions", versions)
	}
}

func TestAnOpenFileIsSentWhenItIsQuiet(t *testing.T) {
	w := mounted(t)
	file, err := os.Create(w.at("log"))
	must(t, err)
	defer file.Close()
	_, err = file.WriteString("first line\n")
	must(t, err)
	w.until("the first line is on the drive", func() bool { return w.content("log") == "first line\n" })
	_, err = file.WriteString("second line\n")
	must(t, err)
	w.until("the second line is on the drive", func() bool { return w.content("log") == "first line\nsecond line\n" })
}

func TestSizesAndTimes(t *testing.T) {
	w := mounted(t)
	w.write("file", "0123456789")
	must(t, os.Truncate(w.at("file"), 4))
	w.expect("file", "0123")
	must(t, os.Truncate(w.at("file"), 6))
	w.expect("file", "0123\x00\x00")
	w.sync()
	w.expectOnDrive("file", "0123\x00\x00")
	when := time.UnixMilli(1_500_000_000_123)
	must(t, os.Chtimes(w.at("file"), when, when))
	must(t, os.Chmod(w.at("file"), 0o755))
	if it := w.find("file"); it.ModifiedAtMs != when.UnixMilli() || !it.Executable {
		t.Errorf("the drive has %+v", it.item)
	}
	// Also when they are set before the file is on the drive, as cp -p and tar do.
	w.save("copied", "text")
	must(t, os.Chtimes(w.at("copied"), when, when))
	must(t, os.Chmod(w.at("copied"), 0o700))
	w.sync()
	if it := w.find("copied"); it.ModifiedAtMs != when.UnixMilli() || !it.Executable {
		t.Errorf("the drive has %+v", it.item)
	}
	if os.Getuid() == 0 { // who unpacks an archive as root sets owners
		must(t, os.Chown(w.at("copied"), 12, 34))
	}
}

func TestAnOpenFileOutlivesItsName(t *testing.T) {
	w := mounted(t)
	w.write("file", "still here")
	file, err := os.OpenFile(w.at("file"), os.O_RDWR, 0)
	must(t, err)
	must(t, os.Remove(w.at("file")))
	w.set(func() {
		w.refuse = func(r *http.Request) int {
			return map[bool]int{true: 404}[r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/content")]
		}
	})
	text, err := io.ReadAll(file)
	must(t, err)
	_, err = file.WriteAt([]byte("until the end"), 0)
	must(t, err)
	again := make([]byte, 13)
	_, err = file.ReadAt(again, 0)
	must(t, err)
	must(t, file.Close())
	w.sync()
	if string(text) != "still here" || string(again) != "until the end" || w.find("file") != nil {
		t.Errorf("it has %q, then %q", text, again)
	}
	if w.count("PUT /files") != 0 {
		t.Error("a removed file was sent")
	}
}

func TestAFolderIsRenamedWhileFilesBelowAreNotSent(t *testing.T) {
	w := mounted(t)
	must(t, os.MkdirAll(w.at("one/two"), 0o755))
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	w.save("one/two/file", "text")
	must(t, os.Rename(w.at("one"), w.at("moved")))
	w.expect("moved/two/file", "text")
	w.set(func() { w.paused = nil })
	close(release)
	w.sync()
	w.expectOnDrive("moved/two/file", "text")
}

func TestAFolderIsRemovedWhileFilesBelowAreNotSent(t *testing.T) {
	w := mounted(t)
	must(t, os.MkdirAll(w.at("folder/sub"), 0o755))
	w.save("folder/sub/file", "text")
	must(t, os.RemoveAll(w.at("folder")))
	w.sync()
	if w.find("folder") != nil || namesIn(t, w.path) != "" {
		t.Error("the folder is there")
	}
	// From elsewhere, what was written is kept, in the drive's root.
	must(t, os.MkdirAll(w.at("other"), 0o755))
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	w.save("other/kept", "kept")
	w.until("it is being sent", func() bool { return w.count("PUT /files") >= 0 })
	w.set(func() {
		it := w.named(rootID, "other")
		it.Live = false
		w.touch(it)
		w.paused = nil
	})
	close(release)
	w.until("the file is in the root", func() bool { return w.content("kept") == "kept" })
}
