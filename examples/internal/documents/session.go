package documents

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Session runs the sh and console blocks of one document, in order, in a directory. A sh block is a
// script that must succeed. In a console block, a command that begins with $ is followed by its
// expected standard output. Numbers and column widths vary between runs and are not compared.
//
// A server keeps running in the background until the next server starts. The instruction "after" of a
// block has commands to run before the block; the command "end" stops the server.
type Session struct {
	Dir      string
	Env      []string            // the environment; the command export changes it
	Programs []string            // programs in the PATH that replace "go run ./examples/NAME"
	Serve    map[string][]string // additional arguments of programs that serve
	Replace  *strings.Replacer   // replaces texts in commands, such as addresses
	Do       map[string]func() error

	server *background
}

type background struct {
	cmd    *exec.Cmd
	mu     sync.Mutex // guards out
	out    bytes.Buffer
	exited chan error
}

// Write implements io.Writer.
func (b *background) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *background) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// patience limits the time of a command.
const patience = 2 * time.Minute

// Run runs a block.
func (s *Session) Run(b Block) error {
	if before, ok := strings.CutPrefix(b.Note, "after: "); ok {
		for _, command := range strings.Split(before, ";") {
			if _, err := s.command(strings.TrimSpace(command), ""); err != nil {
				return fmt.Errorf("before %s: %w", b, err)
			}
		}
	}
	if b.Lang == "sh" {
		if _, err := s.command(b.Text, ""); err != nil {
			return fmt.Errorf("%s: %w", b, err)
		}
		return nil
	}
	for _, c := range commands(b.Text) {
		out, err := s.command(c.text, c.out)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", b, c.text, err)
		}
		if got, want := lines(out), lines(c.out); !slices.Equal(got, want) {
			return fmt.Errorf("%s: %s: the document shows\n%s\nbut the command wrote\n%s", b, c.text, c.out, out)
		}
	}
	return nil
}

type command struct{ text, out string }

// commands returns the commands of a block, each with its expected output.
func commands(text string) (all []command) {
	goesOn := false
	for line := range strings.Lines(text) {
		begin, is := strings.CutPrefix(line, "$ ")
		switch {
		case is:
			all = append(all, command{text: begin})
		case len(all) == 0:
			continue
		case goesOn:
			all[len(all)-1].text += line
		default:
			all[len(all)-1].out += line
		}
		goesOn = (is || goesOn) && strings.HasSuffix(line, "\\\n")
	}
	return all
}

var (
	digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	sizes  = regexp.MustCompile(`0 (KiB|MiB|B)\b`)
)

// lines returns the normalized lines of a text for the comparison.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = sizes.ReplaceAllString(digits.ReplaceAllString(line, "0"), "0 B")
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// command runs one command and returns its output. If the command is a server, it stays in the
// background, and command returns its output as soon as it has as many lines as want.
func (s *Session) command(text, want string) (string, error) {
	text = strings.TrimSpace(text)
	if s.Replace != nil {
		text = s.Replace.Replace(text)
	}
	for _, p := range s.Programs {
		text = strings.Replace(text, "go run ./examples/"+p, p, 1)
	}
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case word == "end":
		return "", s.End()
	case s.Do[word] != nil:
		return "", s.Do[word]()
	case word == "export":
		s.Env = append(s.Env, rest)
		return "", nil
	case s.Serve[word] != nil && (rest == "" || rest[0] == '-'):
		return s.serve(text+" "+strings.Join(s.Serve[word], " "), want)
	}
	c := exec.Command("bash", "-ec", text)
	c.Dir, c.Env, c.WaitDelay = s.Dir, s.Env, time.Second
	var stderr bytes.Buffer
	c.Stderr = &stderr
	defer time.AfterFunc(patience, func() { _ = c.Process.Kill() }).Stop()
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s%s", err, out, &stderr)
	}
	return string(out), err
}

// serve stops the running server and starts another one.
func (s *Session) serve(text, want string) (string, error) {
	if err := s.End(); err != nil {
		return "", err
	}
	b := &background{cmd: exec.Command("bash", "-c", "exec "+text), exited: make(chan error, 1)}
	var stderr bytes.Buffer
	b.cmd.Dir, b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = s.Dir, s.Env, b, &stderr
	if err := b.cmd.Start(); err != nil {
		return "", err
	}
	go func() { b.exited <- b.cmd.Wait() }()
	s.server = b
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		out := b.text()
		if strings.Contains(out, "serving on ") && len(lines(out)) >= len(lines(want)) {
			if want == "" {
				return "", nil
			}
			return out, nil
		}
		select {
		case err := <-b.exited:
			s.server = nil
			return "", fmt.Errorf("the server exited: %w\n%s%s", err, out, &stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return "", errors.Join(errors.New("the server did not write the output in the document:\n"+b.text()), s.End())
}

// End stops the running server.
func (s *Session) End() error {
	if s.server == nil {
		return nil
	}
	b := s.server
	s.server = nil
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-b.exited:
		return err
	case <-time.After(patience):
		return errors.Join(errors.New("the server did not exit"), b.cmd.Process.Kill(), <-b.exited)
	}
}
