package forges

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// place is where a repository is.
type place struct {
	// scheme and host are those of the forge's web server.
	scheme, host string
	// names are the parts of the path, without ".git".
	names []string
	ssh   bool
}

// name is what a part of a path may be, as it is written when it is decoded.
var name = regexp.MustCompile(`^[A-Za-z0-9_.~][A-Za-z0-9_.~ -]*$`)

// placeOf takes the address of a repository apart: one of https or ssh, or user@host:path as scp has it. A forge that git reaches over ssh has its API at
// the same host, by https.
func placeOf(address string) (place, error) {
	refused := fmt.Errorf("%w: url: it has to be the https or ssh address that git clones the repository by", outbound.ErrRefused)
	if before, after, found := strings.Cut(address, ":"); found && !strings.Contains(address, "://") {
		address = "ssh://" + before + "/" + strings.TrimPrefix(after, "/")
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return place{}, refused
	}
	out := place{scheme: parsed.Scheme, host: parsed.Host}
	switch parsed.Scheme {
	case "https", "http":
		if parsed.User != nil {
			return place{}, fmt.Errorf("%w: url: credentials do not belong into a URL; put them into a Secret", outbound.ErrRefused)
		}
	case "ssh":
		out.scheme, out.host, out.ssh = "https", parsed.Hostname(), true
	default:
		return place{}, refused
	}
	out.names = strings.Split(strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git"), "/")
	for _, part := range out.names {
		if !name.MatchString(part) || part == "." || part == ".." {
			return place{}, refused
		}
	}
	return out, nil
}

// forge returns the API of a type of forge at a place.
func (p place) forge(kind string) (*Forge, error) {
	switch kind {
	case weave.ForgeGitHub:
		return p.github()
	case weave.ForgeGitea:
		return p.gitea()
	case weave.ForgeGitLab:
		return p.gitlab()
	case weave.ForgeBitbucketServer:
		return p.bitbucket()
	case weave.ForgeAzureDevOps:
		return p.azure()
	}
	return nil, fmt.Errorf("%w: type: one of %s", outbound.ErrRefused,
		strings.Join([]string{weave.ForgeGitHub, weave.ForgeGitLab, weave.ForgeBitbucketServer, weave.ForgeAzureDevOps, weave.ForgeGitea}, ", "))
}

func (p place) wrong(want string) error {
	return fmt.Errorf("%w: url: that of a repository of this type of forge ends with %s", outbound.ErrRefused, want)
}

// at is an address of the forge.
func (p place) at(names ...string) string {
	return (&url.URL{Scheme: p.scheme, Host: p.host, Path: path.Join("/", path.Join(names...))}).String()
}

func (p place) github() (*Forge, error) {
	if len(p.names) != 2 {
		return nil, p.wrong("/OWNER/REPOSITORY")
	}
	api := p.at("api", "v3")
	switch {
	case p.host == "github.com":
		api = p.scheme + "://api.github.com"
	case strings.HasSuffix(p.host, ".ghe.com"):
		api = p.scheme + "://api." + p.host
	}
	return &Forge{api: api, web: p.at(p.names...), driver: github{repository: escaped("/repos", p.names...)}}, nil
}

func (p place) gitea() (*Forge, error) {
	if len(p.names) < 2 {
		return nil, p.wrong("/OWNER/REPOSITORY")
	}
	root, repository := p.names[:len(p.names)-2], p.names[len(p.names)-2:]
	return &Forge{api: p.at(append(slices.Clone(root), "api", "v1")...), web: p.at(p.names...), driver: gitea{github{repository: escaped("/repos", repository...)}}}, nil
}

func (p place) gitlab() (*Forge, error) {
	if len(p.names) < 2 {
		return nil, p.wrong("/GROUP/PROJECT")
	}
	return &Forge{api: p.at("api", "v4"), web: p.at(p.names...), driver: gitlab{project: "/projects/" + url.PathEscape(strings.Join(p.names, "/"))}}, nil
}

func (p place) bitbucket() (*Forge, error) {
	at := len(p.names) - 2
	if at < 0 || !p.ssh && (at < 1 || p.names[at-1] != "scm") {
		return nil, p.wrong("/scm/PROJECT/REPOSITORY")
	}
	var root []string
	if !p.ssh {
		root = p.names[:at-1]
	}
	project, repository := p.names[at], p.names[at+1]
	web := append(slices.Clone(root), "projects", project, "repos", repository)
	if user, personal := strings.CutPrefix(project, "~"); personal {
		web = append(slices.Clone(root), "users", user, "repos", repository)
	}
	return &Forge{
		api: p.at(append(slices.Clone(root), "rest", "api", "1.0")...), web: p.at(web...),
		driver: bitbucket{project: project, slug: repository, repository: escaped("/projects", project, "repos", repository)},
	}, nil
}

func (p place) azure() (*Forge, error) {
	names := p.names
	if p.ssh && len(names) == 4 && names[0] == "v3" { // git@ssh.dev.azure.com:v3/ORGANISATION/PROJECT/REPOSITORY
		p.host = strings.TrimPrefix(p.host, "ssh.")
		names = []string{names[1], names[2], "_git", names[3]}
	}
	at := len(names) - 2
	if at < 1 || names[at] != "_git" {
		return nil, p.wrong("/PROJECT/_git/REPOSITORY")
	}
	repository, within := names[at+1], slices.Clone(names[:at])
	if p.host == "dev.azure.com" && len(within) == 1 {
		within = append(within, repository) // the repository that a project begins with is called as the project
	}
	return &Forge{
		api: p.at(append(slices.Clone(within), "_apis", "git", "repositories", repository)...),
		web: p.at(append(within, "_git", repository)...), driver: azure{}, query: azureVersion,
	}, nil
}

// escaped joins names to a path, each as it stands in an address.
func escaped(root string, names ...string) string {
	for _, part := range names {
		root += "/" + url.PathEscape(part)
	}
	return root
}
