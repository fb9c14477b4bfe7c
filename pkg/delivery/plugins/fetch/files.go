package fetch

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/internal/text"
)

// File is one that has come.
type File struct {
	// Name is that in an archive, "" if it has come as it is.
	Name   string
	Sha256 string
}

const (
	// mostEntries bounds what an archive may hold, and mostListed what of it a message lists.
	mostEntries = 1000
	mostListed  = 5
	mostName    = 100
)

func list(files []File) string {
	var out []string
	for _, file := range files {
		if len(out) == mostListed {
			out = append(out, fmt.Sprintf("and %d more", len(files)-mostListed))
			break
		}
		said := file.Sha256
		if file.Name != "" {
			said = text.Line(file.Name, mostName) + " with " + said
		}
		out = append(out, said)
	}
	if len(out) == 0 {
		return "nothing that could be run"
	}
	return strings.Join(out, ", ")
}

// reader reads programs from wherever they are.
type reader struct {
	most    int64
	timeout time.Duration
	over    *transport
}

// program is what comes from an address, with its checksum.
type program struct {
	io.Reader
	io.Closer
	sum hash.Hash
}

// Sum is the checksum of what has been read.
func (p program) Sum() string { return hex.EncodeToString(p.sum.Sum(nil)) }

// measured returns what comes from somewhere, which ends with an error when it is too much or takes too long.
func (r reader) measured(ctx context.Context, from io.ReadCloser) program {
	sum := sha256.New()
	return program{io.TeeReader(timed{ctx, r.limit(from)}, sum), from, sum}
}

// timed is a reader that fails when its time is over, which files of the disk do not by themselves.
type timed struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (t timed) Read(into []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.from.Read(into)
}

// limited is a reader that fails when there is more than it may read.
type limited struct {
	from       io.Reader
	most, left int64
}

func (r reader) limit(from io.Reader) *limited { return &limited{from, r.most, r.most} }

// Read implements io.Reader.
func (l *limited) Read(into []byte) (int, error) {
	n, err := l.from.Read(into)
	if l.left -= int64(n); l.left < 0 {
		return 0, tooLarge(l.most)
	}
	return n, err
}

func tooLarge(most int64) error {
	return fmt.Errorf("it is larger than %d bytes, which is all that a program may have", most)
}

var gzipped = []byte{0x1f, 0x8b}

// files calls each with the program, or with each executable of an archive. What comes decides which: addresses may say anything.
func (r reader) files(from program, each func(name string, content io.Reader) error) error {
	buffered := bufio.NewReaderSize(from, 64<<10)
	begin, err := buffered.Peek(len(gzipped))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(begin, gzipped) {
		return each("", buffered)
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return fmt.Errorf("unpack it: %w", err)
	}
	if err := r.entries(tar.NewReader(r.limit(unpacked)), each); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, buffered) // what follows the archive counts in its checksum
	return err
}

func (r reader) entries(archive *tar.Reader, each func(name string, content io.Reader) error) error {
	content := r.limit(archive) // a file may have holes, which are nothing in the archive and bytes on the disk
	for n := 0; ; n++ {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("unpack it: %w", err)
		case n == mostEntries:
			return fmt.Errorf("%w: the archive has more than %d entries", ErrInvalid, mostEntries)
		case header.Typeflag != tar.TypeReg || header.Mode&0o111 == 0:
			continue // what is no program: folders, links, texts
		}
		if err := each(path.Clean(header.Name), content); err != nil {
			return err
		}
	}
}
