package gittest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// NewKey returns a key for SSH, and its private part in PEM, which the passphrase opens unless it is empty.
func NewKey(t *testing.T, passphrase string) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(block)
}

// SSH is a server that one key may log in to.
type SSH struct {
	// Address is its host and port.
	Address string
	// Host is its key.
	Host ssh.PublicKey
}

// ServeSSH has commands of a client with the key run as sshd does.
func ServeSSH(t *testing.T, client ssh.PublicKey) SSH {
	t.Helper()
	return AnswerSSH(t, client, run)
}

// AnswerSSH has commands of a client with the key answered.
func AnswerSSH(t *testing.T, client ssh.PublicKey, answer func(channel ssh.Channel, command string)) SSH {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	host, _ := NewKey(t, "")
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
	return SSH{listener.Addr().String(), host.PublicKey()}
}

// KnownHosts is the line by which clients know the server.
func (s SSH) KnownHosts() []byte { return s.KnownBy(s.Host) }

// KnownBy is the line of a client that knows the server by another key.
func (s SSH) KnownBy(key ssh.PublicKey) []byte {
	return []byte(knownhosts.Line([]string{s.Address}, key) + "\n")
}

// CloneURL is the address of the repository over SSH.
func (s SSH) CloneURL(r *Repository) string { return "ssh://git@" + s.Address + r.Dir }

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
	command.Env = append([]string{"PATH=/usr/bin:/bin"}, trusting...)
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
