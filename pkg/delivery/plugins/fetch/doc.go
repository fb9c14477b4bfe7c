// Package fetch obtains the programs of plugins and keeps them, each under its checksum.
//
// An admin has named the address; who answers there is not believed. A program is measured while it comes, compared before anybody can run it, and compared
// again before each start. Addresses of the server's own machine and network may be named, since it is an admin who names them; where an answer
// leads is another's choice, and must be found by routing.
package fetch
