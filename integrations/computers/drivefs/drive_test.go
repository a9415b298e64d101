package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests mount drives on /dev/fuse. The program runs as a process of its own: this test's program, with a variable.
const runsProgram = "ATRIUM_DRIVEFS_RUNS"

func TestMain(m *testing.M) {
	if os.Getenv(runsProgram) != "" {
		flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
		main()
		return
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		fmt.Println("NOT RUN: the tests of the drive of computers: there is no /dev/fuse")
		return
	}
	os.Exit(m.Run())
}

const (
	testComputer = "cmp_1"
	testSpace    = "spc_1"
	// Only guards against hanging.
	testPatience = 20 * time.Second
)

// world is a worker, the program, and the folders of both.
type world struct {
	*fake
	t       testing.TB
	dir     string
	process *exec.Cmd
	options []string
	// Where the drive of the first computer is.
	path string
}

func newWorld(t testing.TB, options ...string) *world {
	w := &world{fake: newFake(t), t: t, dir: t.TempDir(), options: options}
	w.path = w.dir + "/drive"
	t.Cleanup(func() {
		if w.process != nil {
			w.process.Process.Signal(syscall.SIGTERM)
			w.process.Wait()
		}
		mounts, _ := filepath.Glob(w.dir + "/drive*")
		for _, each := range mounts {
			unmountDead(each)
		}
	})
	w.start()
	return w
}

// mounted is a world whose first computer has its drive.
func mounted(t *testing.T, options ...string) *world {
	w := newWorld(t, options...)
	w.mount(testComputer, testSpace, w.path)
	return w
}

func (w *world) start() {
	arguments := append([]string{"--backend", w.socket, "--control", w.dir + "/control", "--cache", w.dir + "/cache",
		"--stage", w.dir + "/stage"}, w.options...)
	w.process = exec.Command(os.Args[0], arguments...)
	w.process.Env = append(os.Environ(), runsProgram+"=1")
	w.process.Stdout, w.process.Stderr = os.Stderr, os.Stderr
	must(w.t, w.process.Start())
	w.until("the program answers", func() bool {
		status, _ := w.control("GET", "/", nil)
		return status == 200
	})
}

// kill ends the program as a crash does.
func (w *world) kill() {
	w.process.Process.Kill()
	w.process.Wait()
	w.process = nil
}

func (w *world) control(method, path string, body any) (int, map[string]any) {
	return ask(w.dir+"/control", method, path, body)
}

func ask(socket, method, path string, body any) (int, map[string]any) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	text, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, "http://drive"+path, bytes.NewReader(text))
	response, err := client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	var answer map[string]any
	json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer
}

func (w *world) mount(computerID, spaceID, path string) {
	w.t.Helper()
	unmountDead(path) // left by a killed program: otherwise the folder does not even answer
	must(w.t, os.MkdirAll(path, 0o755))
	status, answer := w.control("PUT", "/mounts/"+computerID, mountSpec{SpaceID: spaceID, Name: "computer", Target: path,
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), LocalDir: path + ".local", SyncSocket: path + ".sync"})
	if status != 204 {
		w.t.Fatalf("mount: %d %v", status, answer)
	}
}

func (w *world) sync() {
	w.t.Helper()
	status, answer := w.control("POST", "/mounts/"+testComputer+"/sync", map[string]any{"timeoutMs": 10_000})
	if status != 200 || answer["pendingFiles"] != 0.0 {
		w.t.Fatalf("sync: %d %v", status, answer)
	}
}

func (w *world) at(path string) string { return w.path + "/" + path }

func (w *world) save(path, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(w.at(path), []byte(text), 0o644))
}

func (w *world) read(path string) string {
	text, err := os.ReadFile(w.at(path))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text)
}

func (w *world) expect(path, text string) {
	w.t.Helper()
	if actual := w.read(path); actual != text {
		w.t.Fatalf("%s has %q and should have %q", path, actual, text)
	}
}

// expectOnDrive checks a file's content on the other side.
func (w *world) expectOnDrive(path, text string) {
	w.t.Helper()
	if actual := w.content(path); actual != text {
		w.t.Fatalf("on the drive %s has %q and should have %q", path, actual, text)
	}
}

func (w *world) until(what string, check func() bool) {
	w.t.Helper()
	for began := time.Now(); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > testPatience {
			w.t.Fatalf("it never happened that %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expectError(t *testing.T, err error, errno syscall.Errno) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Fatalf("the error is %v and should be %v", err, errno)
	}
}

func namesIn(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	must(t, err)
	var names []string
	for _, each := range entries {
		names = append(names, each.Name())
	}
	return strings.Join(names, " ")
}

func TestContentsOfTheDriveAreFiles(t *testing.T) {
	w := mounted(t)
	w.write("notes.txt", "hello")
	w.write("folder/deep/file", strings.Repeat("x", 300_000))
	w.expect("notes.txt", "hello")
	w.expect("folder/deep/file", strings.Repeat("x", 300_000))
	if names := namesIn(t, w.path); names != "folder notes.txt" {
		t.Errorf("the names are %s", names)
	}
	info, err := os.Stat(w.at("notes.txt"))
	must(t, err)
	if info.Size() != 5 || info.Mode() != 0o644 || info.ModTime().UnixMilli() != w.find("notes.txt").ModifiedAtMs {
		t.Errorf("the file is %v %v %v", info.Size(), info.Mode(), info.ModTime())
	}
}

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

func TestChangesFromElsewhereAreSeen(t *testing.T) {
	w := mounted(t)
	w.write("file", "one")
	w.expect("file", "one")
	_, err := os.Stat(w.at("new"))
	expectError(t, err, syscall.ENOENT)
	w.write("file", "two, longer")
	w.write("new", "made")
	w.until("the content is the new one", func() bool { return w.read("file") == "two, longer" })
	w.until("the new file is there", func() bool { return w.read("new") == "made" })
	w.until("the listing is the new one", func() bool { return namesIn(t, w.path) == "file new" })
	w.set(func() {
		f := w.named(rootID, "new")
		f.Name = "renamed"
		w.touch(f)
		w.fake.named(rootID, "file").Live = false
	})
	w.set(func() {
		for _, it := range w.items {
			if it.Name == "file" {
				w.touch(it)
			}
		}
	})
	w.until("one file is renamed and the other gone", func() bool { return namesIn(t, w.path) == "renamed" })
	w.expect("renamed", "made")
	w.set(func() { w.resets = true })
	w.write("after", "reset")
	w.until("the drive is listed again", func() bool { return w.read("after") == "reset" })
}

func TestAFolderOf100000Files(t *testing.T) {
	w := newWorld(t)
	w.set(func() {
		folder := w.add(rootID, "many", "folder")
		for number := range 100_000 {
			w.add(folder.ID, fmt.Sprintf("file-%06d", number), "file")
		}
	})
	w.mount(testComputer, testSpace, w.path)
	folder, err := os.Open(w.at("many"))
	must(t, err)
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	must(t, err)
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	if len(names) != 100_000 || len(seen) != 100_000 {
		t.Errorf("the folder has %d names, %d of them different", len(names), len(seen))
	}
	if pages := w.count("GET /children"); pages != 21 {
		t.Errorf("it took %d requests", pages)
	}
}

func TestARenameOverAFileThatTheDriveHasSendsThatToTheTrash(t *testing.T) {
	w := mounted(t)
	target, source := w.write("target", "old"), w.write("source", "new")
	must(t, os.Rename(w.at("source"), w.at("target")))
	w.expect("target", "new")
	w.expectOnDrive("target", "new")
	if w.find("target").ID != source.ID || target.Live || w.find("source") != nil {
		t.Error("the target did not go to the trash")
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

func TestIgnoredNamesStayLocal(t *testing.T) {
	w := mounted(t)
	w.write("project/.driveignore", "# local\n*.log\n!keep.log\n/build\ndocs/**/draft\n")
	w.write("project/docs/a/x", "x")
	for _, path := range []string{"project/node_modules/pkg/index.js", "project/debug.log", "project/sub/deep.log",
		"project/build/out", "project/docs/a/draft", "x.swp"} {
		must(t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
		w.save(path, "local")
		w.expect(path, "local")
	}
	for _, path := range []string{"project/keep.log", "project/sub/build", "target"} {
		w.save(path, "shared")
	}
	w.sync()
	for _, path := range []string{"project/node_modules", "project/debug.log", "project/sub/deep.log", "project/build",
		"project/docs/a/draft", "x.swp"} {
		if w.find(path) != nil {
			t.Errorf("%s is on the drive", path)
		}
	}
	for _, path := range []string{"project/keep.log", "project/sub/build", "target"} {
		w.expectOnDrive(path, "shared")
	}
	if names := namesIn(t, w.at("project")); names != ".driveignore build debug.log docs keep.log node_modules sub" {
		t.Errorf("the names are %s", names)
	}
	expectError(t, os.Rename(w.at("target"), w.at("project/target.log")), syscall.EXDEV)
	must(t, os.Rename(w.at("project/debug.log"), w.at("project/sub/other.log")))
	w.expect("project/sub/other.log", "local")
	// They follow their folder, and outlive the mount.
	must(t, os.Rename(w.at("project"), w.at("renamed")))
	w.expect("renamed/node_modules/pkg/index.js", "local")
	w.kill()
	w.start()
	w.mount(testComputer, testSpace, w.path)
	w.expect("renamed/node_modules/pkg/index.js", "local")
	must(t, os.RemoveAll(w.at("renamed")))
	if names := namesIn(t, w.path); names != "target x.swp" {
		t.Errorf("the names are %s", names)
	}
}

func TestALinkInTheLocalFolderDoesNotLeadOut(t *testing.T) {
	w := mounted(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/secret", []byte("secret"), 0o644))
	must(t, os.Mkdir(w.at("node_modules"), 0o755))
	w.save("node_modules/own", "own")
	must(t, os.MkdirAll(w.at("node_modules/sub"), 0o755))
	w.save("node_modules/sub/own", "own")
	// Who has the folder open asks the program for what is below it. (A path would lead to the link as any other link
	// does, which the computer's own kernel follows.)
	sub, err := syscall.Open(w.at("node_modules/sub"), syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	must(t, err)
	defer syscall.Close(sub)
	must(t, syscall.Fstat(sub, &syscall.Stat_t{}))
	local := w.path + ".local/" + rootID + "/node_modules"
	must(t, os.Rename(local+"/sub", local+"/moved"))
	must(t, os.Symlink(outside, local+"/sub"))
	for _, name := range []string{"secret", "planted"} {
		if file, err := syscall.Openat(sub, name, syscall.O_RDWR|syscall.O_CREAT, 0o644); err == nil {
			t.Errorf("%s was opened outside", name)
			syscall.Close(file)
		}
	}
	if syscall.Mkdirat(sub, "new", 0o755) == nil || syscall.Unlinkat(sub, "secret") == nil ||
		syscall.Fchmodat(sub, "secret", 0o777, 0) == nil {
		t.Error("a change outside succeeded")
	}
	if names := namesIn(t, outside); names != "secret" {
		t.Errorf("outside is %s", names)
	}
	status, _ := w.control("DELETE", "/mounts/"+testComputer+"?timeoutMs=1000", nil)
	if status != 204 {
		t.Fatalf("unmount: %d", status)
	}
	must(t, os.RemoveAll(w.path+".local"))
	must(t, os.Symlink(outside, w.path+".local"))
	status, _ = w.control("PUT", "/mounts/"+testComputer, mountSpec{SpaceID: testSpace, Target: w.path,
		LocalDir: w.path + ".local"})
	if status == 204 {
		t.Error("a link in place of the local folder was accepted")
	}
}

func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"..", ".", "a/b", "", "nul\x00", "new\nline"} {
		w.set(func() { w.touch(w.add(rootID, name, "file")) })
	}
	w.write("fine", "fine")
	w.mount(testComputer, testSpace, w.path)
	if names := namesIn(t, w.path); names != "fine" {
		t.Errorf("the names are %q", names)
	}
	for _, name := range []string{"new\nline", "\xff\xfe", "bell\a", "del\x7f"} {
		expectError(t, os.WriteFile(w.at(name), nil, 0o644), syscall.EINVAL)
		expectError(t, os.Mkdir(w.at(name), 0o755), syscall.EINVAL)
		_, err := os.Stat(w.at(name))
		expectError(t, err, syscall.ENOENT)
	}
	status, _ := w.control("PUT", "/mounts/"+testComputer, mountSpec{SpaceID: "../other", Target: w.path})
	if status != 422 {
		t.Errorf("a space that is a path is answered with %d", status)
	}
	status, _ = w.control("PUT", "/mounts/..%2Fother", mountSpec{SpaceID: testSpace, Target: w.path})
	if status != 422 {
		t.Errorf("a computer that is a path is answered with %d", status)
	}
}

func TestSpacesShareNoCache(t *testing.T) {
	w := mounted(t)
	w.write("file", "same content")
	w.mount("cmp_2", "spc_2", w.path+"2")
	w.expect("file", "same content")
	other, err := os.ReadFile(w.path + "2/file")
	must(t, err)
	if string(other) != "same content" {
		t.Errorf("the other has %q", other)
	}
	paths, _ := filepath.Glob(w.dir + "/cache/*/*")
	if len(paths) != 2 || filepath.Dir(paths[0]) == filepath.Dir(paths[1]) || w.count("GET /content") != 2 {
		t.Errorf("the cache has %v after %d fetches", paths, w.count("GET /content"))
	}
}

func TestNamesThatLookTheSameAreTheSame(t *testing.T) {
	w := mounted(t)
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	w.write(composed, "coffee")
	w.expect(decomposed, "coffee")
	expectError(t, os.Mkdir(w.at(decomposed), 0o755), syscall.EEXIST)
	w.save(decomposed, "tea")
	w.sync()
	w.expectOnDrive(composed, "tea")
	if names := namesIn(t, w.path); names != composed {
		t.Errorf("the names are %q", names)
	}
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

func TestAppsAndRepositories(t *testing.T) {
	w := newWorld(t)
	w.set(func() {
		app := w.add(rootID, "shop", "app")
		w.add("app:"+app.ID, "main.py", "file")
		repository := w.add(rootID, "code", "repository")
		repository.Target = "/home/user/repositories/code"
	})
	w.mount(testComputer, testSpace, w.path)
	if names := namesIn(t, w.at("shop")); names != "main.py" {
		t.Errorf("the app has %s", names)
	}
	w.save("shop/new.py", "print()")
	w.sync()
	w.set(func() {
		if w.named("app:"+w.named(rootID, "shop").ID, "new.py") == nil {
			t.Error("the app has no new file")
		}
	})
	if target, err := os.Readlink(w.at("code")); err != nil || target != "/home/user/repositories/code" {
		t.Errorf("the repository leads to %q %v", target, err)
	}
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

func TestLinksAndDevicesAreRefused(t *testing.T) {
	w := mounted(t)
	w.save("file", "text")
	expectError(t, os.Link(w.at("file"), w.at("hard")), syscall.EPERM)
	expectError(t, syscall.Mkfifo(w.at("fifo"), 0o644), syscall.EPERM)
	expectError(t, syscall.Setxattr(w.at("file"), "user.a", []byte("b"), 0), syscall.ENOTSUP)
	lock := func() error {
		file, err := os.Open(w.at("file"))
		must(t, err)
		t.Cleanup(func() { file.Close() })
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	must(t, lock())
	expectError(t, lock(), syscall.EWOULDBLOCK)
}

func TestALargeFileIsReadByParts(t *testing.T) {
	w := mounted(t)
	text := strings.Repeat("0123456789abcdef", (maxWholeBytes+partBytes)/16) + "end"
	w.write("large", text)
	file, err := os.Open(w.at("large"))
	must(t, err)
	defer file.Close()
	end := make([]byte, 5)
	_, err = file.ReadAt(end, int64(len(text)-5))
	must(t, err)
	if string(end) != "efend" {
		t.Errorf("it ends with %q", end)
	}
	if all, err := io.ReadAll(file); err != nil || string(all) != text {
		t.Errorf("%d bytes were read: %v", len(all), err)
	}
}
