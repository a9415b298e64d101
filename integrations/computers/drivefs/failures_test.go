package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAKilledProgramSendsWhatItHad(t *testing.T) {
	w := mounted(t)
	w.write("old.txt", "before")
	w.expect("old.txt", "before")
	release := make(chan struct{})
	w.set(func() { w.paused = release }) // the drive takes nothing
	w.save("old.txt", "after")
	w.save("new.txt", "made")
	w.kill()
	w.expectOnDrive("old.txt", "before")
	w.set(func() { w.paused = nil })
	close(release)
	w.start()
	w.mount(testComputer, testSpace, w.path)
	w.expectOnDrive("old.txt", "after")
	w.expectOnDrive("new.txt", "made")
	w.expect("old.txt", "after")
	w.expect("new.txt", "made")
	files, _ := filepath.Glob(w.dir + "/stage/" + testComputer + "/*")
	if len(files) > 0 {
		t.Errorf("the journal has %v", files)
	}
}

func TestAProgramThatIsKilledAfterATruncationKeepsTheOldContent(t *testing.T) {
	w := mounted(t)
	w.write("file", "precious")
	file, err := os.OpenFile(w.at("file"), os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	w.expect("file", "")
	w.control("POST", "/mounts/"+testComputer+"/sync", map[string]any{"timeoutMs": 100})
	w.kill()
	file.Close()
	w.start()
	w.mount(testComputer, testSpace, w.path)
	w.expect("file", "precious")
	if versions := len(w.find("file").versions); versions != 0 {
		t.Errorf("there are %d old versions", versions)
	}
}

func TestWithoutAWorkerCachedFilesAreReadAndOthersFailInTheEnd(t *testing.T) {
	w := mounted(t, "--patience", "2s")
	w.write("cached", "here")
	w.write("other", "elsewhere")
	w.write("waits", "there")
	w.expect("cached", "here")
	info, err := os.Stat(w.at("other"))
	must(t, err)
	if info.Size() != 9 {
		t.Errorf("the size is %d", info.Size())
	}
	w.away()
	w.expect("cached", "here")
	_, err = os.ReadFile(w.at("other"))
	if err == nil {
		t.Log("it was fetched before") // small files beside a read one are
	} else {
		expectError(t, err, syscall.EIO)
	}
	expectError(t, os.Mkdir(w.at("folder"), 0o755), syscall.EIO)
	w.save("written", "meanwhile")
	w.expect("written", "meanwhile")
	// A request that waits is answered when the worker is back.
	made := make(chan error, 1)
	go func() { made <- os.Mkdir(w.at("later"), 0o755) }()
	w.listen()
	must(t, <-made)
	w.sync()
	w.expectOnDrive("written", "meanwhile")
}

func TestAFullDriveRefusesWritesAtOnce(t *testing.T) {
	w := newWorld(t)
	free := int64(10_000)
	w.free = &free
	w.mount(testComputer, testSpace, w.path)
	w.save("small", strings.Repeat("x", 5_000))
	err := os.WriteFile(w.at("large"), bytes.Repeat([]byte("x"), 20_000), 0o644)
	expectError(t, err, syscall.ENOSPC)
	var stat syscall.Statfs_t
	must(t, syscall.Statfs(w.path, &stat))
	if stat.Bavail*uint64(stat.Bsize) > 10_000 {
		t.Errorf("%d blocks are free", stat.Bavail)
	}
}

func TestWhoMayOnlyReadWritesNothing(t *testing.T) {
	w := mounted(t)
	w.write("file", "text")
	w.expect("file", "text")
	w.set(func() { w.access = "read" })
	w.until("nothing can be written", func() bool {
		return errors.Is(os.WriteFile(w.at("new"), nil, 0o644), syscall.EROFS)
	})
	expectError(t, os.WriteFile(w.at("file"), nil, 0o644), syscall.EROFS)
	expectError(t, os.Remove(w.at("file")), syscall.EROFS)
	expectError(t, os.Mkdir(w.at("folder"), 0o755), syscall.EROFS)
	expectError(t, os.Rename(w.at("file"), w.at("other")), syscall.EROFS)
	w.expect("file", "text")
}

func TestWithoutAccessEverythingIsRefused(t *testing.T) {
	w := mounted(t)
	w.write("folder/file", "text")
	w.expect("folder/file", "text")
	open, err := os.Open(w.at("folder/file"))
	must(t, err)
	defer open.Close()
	w.set(func() { w.access = "none" })
	w.until("the file cannot be read", func() bool {
		_, err := os.ReadFile(w.at("folder/file"))
		return errors.Is(err, syscall.EACCES)
	})
	w.until("the open file cannot be read", func() bool {
		_, err := open.ReadAt(make([]byte, 4), 0)
		return errors.Is(err, syscall.EACCES)
	})
	w.until("nothing is listed", func() bool {
		_, err := os.ReadDir(w.path)
		return errors.Is(err, syscall.EACCES)
	})
	w.set(func() { w.access = "write" })
	w.until("the file can be read again", func() bool { return w.read("folder/file") == "text" })
}

func TestAProgramThatWaitsForTheWorkerCanBeKilled(t *testing.T) {
	w := mounted(t)
	w.write("file", "text")
	_, err := os.Stat(w.at("file"))
	must(t, err)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	defer close(release)
	w.set(func() {
		w.slow = func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/content") {
				asked <- struct{}{}
				<-release
			}
		}
	})
	cat := exec.Command("cat", w.at("file"))
	must(t, cat.Start())
	<-asked
	must(t, cat.Process.Kill())
	cat.Wait()
}

func TestWhatAnUnmountCannotSendIsSentLater(t *testing.T) {
	w := mounted(t)
	release := make(chan struct{})
	w.set(func() { w.paused = release })
	w.save("file", "late")
	status, _ := w.control("DELETE", "/mounts/"+testComputer+"?timeoutMs=50", nil)
	if status != 204 || isMounted(w.path) {
		t.Fatalf("unmount: %d", status)
	}
	_, state := w.control("GET", "/", nil)
	if mounts := state["mounts"].([]any); len(mounts) != 1 || mounts[0].(map[string]any)["pendingFiles"] != 1.0 {
		t.Errorf("the state is %v", state)
	}
	w.set(func() { w.paused = nil })
	close(release)
	w.until("the file is on the drive", func() bool { return w.content("file") == "late" })
}

func TestAMountThatSomebodyElseTookAwayIsGivenUp(t *testing.T) {
	w := mounted(t)
	w.save("file", "text")
	must(t, syscall.Unmount(w.path, syscall.MNT_DETACH))
	must(t, os.Remove(w.path))
	status, answer := w.control("DELETE", "/mounts/"+testComputer+"?timeoutMs=1000", nil)
	if status != 204 {
		t.Fatalf("unmount: %d %v", status, answer)
	}
	w.expectOnDrive("file", "text")
	if _, state := w.control("GET", "/", nil); len(state["mounts"].([]any)) != 0 {
		t.Errorf("the state is %v", state)
	}
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.process.Process.Pid))
	for _, each := range open {
		if target, _ := os.Readlink(each); target == w.path+".local" {
			t.Errorf("%s is open", target)
		}
	}
}
