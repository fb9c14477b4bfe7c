package git

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(block)
}

// sshd lets a client with the key run git-upload-pack, and returns its address.
func sshd(t *testing.T, host ssh.Signer, client ssh.PublicKey) string {
	t.Helper()
	return sshAnswering(t, host, client, run)
}

// sshAnswering lets a client with the key have commands answered, and returns its address.
func sshAnswering(t *testing.T, host ssh.Signer, client ssh.PublicKey, answer func(ssh.Channel, string)) string {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config, answer)
		}
	}()
	return listener.Addr().String()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig, answer func(ssh.Channel, string)) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go func() {
			for request := range requests {
				request.Reply(request.Type == "exec", nil)
				if request.Type == "exec" {
					answer(channel, string(request.Payload[4:]))
				}
			}
		}()
	}
}

// run runs a command as sshd does: by a shell.
func run(channel ssh.Channel, line string) {
	defer channel.Close()
	command := exec.Command("sh", "-c", line)
	command.Env = []string{"PATH=/usr/bin:/bin", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	command.Stdout, command.Stderr = channel, channel.Stderr()
	in, err := command.StdinPipe()
	if err != nil || command.Start() != nil {
		return
	}
	go func() {
		io.Copy(in, channel)
		in.Close()
	}()
	command.Wait()
	channel.SendRequest("exit-status", false, make([]byte, 4))
}

func TestFetchOverSSH(t *testing.T) {
	r := newTestRepository(t)
	r.commit("first", map[string]string{"web.yaml": "first"})
	r.commit("second", map[string]string{"web.yaml": "second"})
	host, _ := newKey(t)
	client, private := newKey(t)
	stranger, strange := newKey(t)
	address := sshd(t, host, client.PublicKey())
	known := []byte(knownhosts.Line([]string{address}, host.PublicKey()) + "\n")

	for name, test := range map[string]struct {
		credentials Credentials
		path        string
		want        error
		says        string
	}{
		"with the key":                        {credentials: Credentials{SSHKey: private, KnownHosts: known}, path: r.dir},
		"with another key":                    {credentials: Credentials{SSHKey: strange, KnownHosts: known}, path: r.dir, want: ErrCredentials},
		"from a host that known_hosts lacks":  {credentials: Credentials{SSHKey: private, KnownHosts: []byte("\n")}, path: r.dir, want: ErrCredentials, says: "known_hosts has no key"},
		"from a host that shows another key":  {credentials: Credentials{SSHKey: private, KnownHosts: []byte(knownhosts.Line([]string{address}, stranger.PublicKey()))}, path: r.dir, want: ErrCredentials, says: "another key"},
		"of a repository that there is not":   {credentials: Credentials{SSHKey: private, KnownHosts: known}, path: "/nowhere", want: ErrNoRepository},
		"of a path that a shell would act on": {credentials: Credentials{SSHKey: private, KnownHosts: known}, path: "/x'; echo 003d; '!", want: ErrNoRepository},
	} {
		t.Run(name, func(t *testing.T) {
			request := Request{URL: "ssh://git@" + address + test.path, Ref: Ref{Branch: "main"}, Credentials: test.credentials}
			checkout, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{}), request)
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if err != nil {
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %q does not say %q", err, test.says)
				}
				return
			}
			if content, err := fs.ReadFile(checkout.FS(), "web.yaml"); err != nil || string(content) != "second" {
				t.Errorf("web.yaml holds %q (%v)", content, err)
			}
		})
	}
}

func TestAnAnswerOverSSHIsMeasured(t *testing.T) {
	host, _ := newKey(t)
	client, private := newKey(t)
	commit := strings.Repeat("1", 40)
	address := sshAnswering(t, host, client.PublicKey(), func(channel ssh.Channel, _ string) {
		defer channel.Close()
		out := pktline.NewEncoder(channel)
		err := errors.Join(out.EncodeString(commit+" HEAD\x00shallow allow-reachable-sha1-in-want\n"), out.Flush())
		for err == nil {
			err = out.EncodeString("shallow " + commit + "\n")
		}
	})
	request := Request{URL: "ssh://git@" + address + "/endless", Credentials: Credentials{
		SSHKey: private, KnownHosts: []byte(knownhosts.Line([]string{address}, host.PublicKey()) + "\n"),
	}}
	_, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{Pack: 1, Timeout: time.Minute}), request)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want %v", err, ErrTooLarge)
	}
}
