package git

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"golang.org/x/crypto/ssh"

	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

func TestFetchOverSSH(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first"})
	r.Commit("second", map[string]string{"web.yaml": "second"})
	client, private := gittest.NewKey(t, "")
	stranger, strange := gittest.NewKey(t, "")
	server := gittest.ServeSSH(t, client.PublicKey())
	known := server.KnownHosts()

	for name, test := range map[string]struct {
		credentials Credentials
		path        string
		want        error
		says        string
	}{
		"with the key":                        {credentials: Credentials{SSHKey: private, KnownHosts: known}, path: r.Dir},
		"with another key":                    {credentials: Credentials{SSHKey: strange, KnownHosts: known}, path: r.Dir, want: ErrCredentials},
		"from a host that known_hosts lacks":  {credentials: Credentials{SSHKey: private, KnownHosts: []byte("\n")}, path: r.Dir, want: ErrCredentials, says: "known_hosts has no key"},
		"from a host that shows another key":  {credentials: Credentials{SSHKey: private, KnownHosts: server.KnownBy(stranger.PublicKey())}, path: r.Dir, want: ErrCredentials, says: "another key"},
		"of a repository that there is not":   {credentials: Credentials{SSHKey: private, KnownHosts: known}, path: "/nowhere", want: ErrNoRepository},
		"of a path that a shell would act on": {credentials: Credentials{SSHKey: private, KnownHosts: known}, path: "/x'; echo 003d; '!", want: ErrNoRepository},
	} {
		t.Run(name, func(t *testing.T) {
			request := Request{URL: "ssh://git@" + server.Address + test.path, Ref: Ref{Branch: "main"}, Credentials: test.credentials}
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

func TestAPasswordOpensAKeyThatIsEncrypted(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first"})
	for name, test := range map[string]struct {
		passphrase, password string
		says                 string
	}{
		"with its password":                       {passphrase: "open-sesame", password: "open-sesame"},
		"with another password":                   {passphrase: "open-sesame", password: "s3cret-word", says: "the password does not open the private key"},
		"without a password":                      {passphrase: "open-sesame", says: "the private key is encrypted, and there is no password"},
		"with one that a plain key does not need": {password: "s3cret-word"},
	} {
		t.Run(name, func(t *testing.T) {
			client, private := gittest.NewKey(t, test.passphrase)
			server := gittest.ServeSSH(t, client.PublicKey())
			_, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{}), Request{
				URL: server.CloneURL(r.Repository), Credentials: Credentials{SSHKey: private, Password: test.password, KnownHosts: server.KnownHosts()},
			})
			if test.says == "" && err != nil {
				t.Fatal(err)
			}
			if test.says != "" && (!errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "s3cret-word")) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestAnAnswerOverSSHIsMeasured(t *testing.T) {
	client, private := gittest.NewKey(t, "")
	commit := strings.Repeat("1", 40)
	server := gittest.AnswerSSH(t, client.PublicKey(), func(channel ssh.Channel, _ string) {
		defer channel.Close()
		out := pktline.NewEncoder(channel)
		err := errors.Join(out.EncodeString(commit+" HEAD\x00shallow allow-reachable-sha1-in-want\n"), out.Flush())
		for err == nil {
			err = out.EncodeString("shallow " + commit + "\n")
		}
	})
	request := Request{URL: "ssh://git@" + server.Address + "/endless", Credentials: Credentials{SSHKey: private, KnownHosts: server.KnownHosts()}}
	_, err := read(t, newTestClient(t, Policy{Allow: anywhere}, Limits{Pack: 1, Timeout: time.Minute}), request)
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want %v", err, ErrTooLarge)
	}
}
