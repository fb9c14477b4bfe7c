package fetch

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Source is a program and where it is.
type Source struct {
	// URL is file:///PATH, https://HOST/PATH, http://HOST/PATH or oci://REGISTRY/REPOSITORY:TAG.
	URL string
	// Sha256 is the checksum of the program, 64 hexadecimal digits in lower case.
	Sha256 string
	// Again has the program fetched though it is there.
	Again bool
	// Login is by what the program is fetched, if that takes a login.
	Login Login
}

// Options bound what is fetched.
type Options struct {
	// MostBytes bounds a program, and what it comes in; 512 MiB unless it is set.
	MostBytes int64
	// Timeout bounds how long one may take; 10 minutes unless it is set.
	Timeout time.Duration
	// Roots are what servers are trusted by; nil stands for those of the system.
	Roots *x509.CertPool
}

const (
	mostBytes = 512 << 20
	mostTime  = 10 * time.Minute
)

// ErrInvalid says that a Source cannot be fetched whoever is asked, and ErrDiffers that a program is not the one that was asked for.
var (
	ErrInvalid = errors.New("cannot be fetched")
	ErrDiffers = errors.New("the checksum differs")
)

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Cache is a folder of programs.
type Cache struct {
	folder string
	reader
}

// coming is what the names of files begin with that are not whole.
const coming = "coming-"

// New returns the cache in a folder of its own, which is made unless it is there. What an earlier process has not finished is removed.
func New(folder string, options Options) (*Cache, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of plugins' programs: %w", err)
	}
	c := &Cache{folder, newReader(options)}
	root, err := c.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return c, c.remove(root, func(name string) bool { return strings.HasPrefix(name, coming) })
}

// Get returns where a program is that has the checksum, and fetches it unless it is there. It is for everybody to read and run, and for nobody to write.
func (c *Cache) Get(ctx context.Context, source Source) (string, error) {
	if !checksum.MatchString(source.Sha256) {
		return "", fmt.Errorf("%w: the checksum must be 64 hexadecimal digits in lower case", ErrInvalid)
	}
	path := filepath.Join(c.folder, source.Sha256)
	if !source.Again && Verify(path, source.Sha256) == nil {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := c.fetch(ctx, source); err != nil {
		return "", fmt.Errorf("fetch %s: %w", shown(source.URL), timedOut(ctx, err, c.timeout))
	}
	return path, nil
}

// timedOut says what a context that has ended means here.
func timedOut(ctx context.Context, err error, after time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(err, ErrDiffers) {
		return fmt.Errorf("it has not come within %s: %w", after, err)
	}
	return err
}

func (c *Cache) fetch(ctx context.Context, source Source) error {
	program, err := c.openProgram(ctx, source.URL, source.Login)
	if err != nil {
		return unlogged(err)
	}
	defer program.Close()
	root, err := c.open()
	if err != nil {
		return err
	}
	defer root.Close()

	var others []File
	err = c.files(program, func(name string, content io.Reader) error {
		file := File{Name: name}
		kept, err := c.keep(root, source.Sha256, content, &file)
		if kept {
			return errKept
		}
		others = append(others, file)
		return err
	})
	switch {
	case errors.Is(err, errKept):
		return nil
	case err != nil:
		return err
	}
	return differs(source.Sha256, program.Sum(), others)
}

// errKept ends the search of an archive for the one file of it that is asked for.
var errKept = errors.New("it is there")

// keep writes a file into the cache, and makes it the program if it has the checksum.
func (c *Cache) keep(root *os.Root, want string, content io.Reader, file *File) (kept bool, err error) {
	name := coming + rand.Text()
	// It is made here or not at all: nothing that somebody has put into the folder is written to.
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, to.Close())
		if !kept {
			err = errors.Join(err, root.Remove(name))
		}
	}()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), content); err != nil {
		return false, err
	}
	if file.Sha256 = hex.EncodeToString(sum.Sum(nil)); file.Sha256 != want {
		return false, nil
	}
	if err := errors.Join(to.Sync(), to.Chmod(0o555)); err != nil {
		return false, err
	}
	if info, err := root.Lstat(want); err == nil && info.IsDir() {
		if err := root.RemoveAll(want); err != nil {
			return false, err
		}
	}
	// A link of the name is replaced, and not what it leads to.
	err = root.Rename(name, want)
	return err == nil, err
}

// differs says what has come in place of what was asked for.
func differs(want, got string, files []File) error {
	if want == got {
		return fmt.Errorf("%w: %s is the checksum of the archive, and that of the program in it is asked for: %s", ErrDiffers, want, list(files))
	}
	return fmt.Errorf("%w: asked for is %s, and what has come is %s", ErrDiffers, want, list(files))
}

// Prune removes all programs but those with the checksums to keep.
func (c *Cache) Prune(keep []string) error {
	root, err := c.open()
	if err != nil {
		return err
	}
	defer root.Close()
	return c.remove(root, func(name string) bool { return checksum.MatchString(name) && !slices.Contains(keep, name) })
}

// open opens the folder, out of which no link leads.
func (c *Cache) open() (*os.Root, error) {
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of plugins' programs: %w", err)
	}
	return root, nil
}

func (c *Cache) remove(root *os.Root, which func(name string) bool) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list the folder of plugins' programs: %w", err)
	}
	for _, entry := range entries {
		if which(entry.Name()) {
			err = errors.Join(err, root.RemoveAll(entry.Name()))
		}
	}
	return err
}

// Verify compares a program with a checksum. A program is compared before each start, so it is no link, which may lead elsewhere by then, and nobody else
// may write it.
func Verify(path, want string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %s is no file that its owner alone may write", ErrDiffers, path)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%w: %s has %s, asked for is %s", ErrDiffers, path, got, want)
	}
	return nil
}

// Pin fetches a program to tell its checksum, and keeps nothing. Out of an archive it is the one file that is executable, or the only file.
func Pin(ctx context.Context, url string, options Options) (File, error) {
	r := newReader(options)
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	file, err := r.pin(ctx, url)
	if err != nil {
		return File{}, fmt.Errorf("fetch %s: %w", shown(url), timedOut(ctx, err, r.timeout))
	}
	return file, nil
}

func (r reader) pin(ctx context.Context, url string) (File, error) {
	program, err := r.openProgram(ctx, url, Login{})
	if err != nil {
		return File{}, err
	}
	defer program.Close()
	var found []File
	err = r.files(program, func(name string, content io.Reader) error {
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		found = append(found, File{Name: name, Sha256: hex.EncodeToString(sum.Sum(nil))})
		return nil
	})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%w: which of these is the program? %s", ErrInvalid, list(found))
	}
	if err != nil {
		return File{}, err
	}
	return found[0], nil
}

func newReader(options Options) reader {
	return reader{most: cmp.Or(options.MostBytes, mostBytes), timeout: cmp.Or(options.Timeout, mostTime), over: newTransport(options.Roots)}
}
