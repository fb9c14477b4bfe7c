// Package git reads a commit of a git repository that somebody else names: over HTTPS, over SSH, or from the server's own disk where that is
// allowed. It fetches one commit at a time, without history, into a folder below a bound, and shows its files as an fs.FS.
//
// Neither the URL nor the repository is believed. The addresses that may be called are checked when the connection is made, an answer may not
// lead to another host, and what a repository sends is measured before anything is built of it.
package git
