// Package scripts runs the scripts of releases, and the measurements that are Jobs, each as a Job of the logical cluster beside the application.
//
// A run has one name, and so has its Job: whoever asks for it once more, after a restart too, finds the Job that there is. It runs once and is
// not tried again, since nobody but its author knows whether it may be. How it has ended is read from the Job, so nothing is remembered here.
// Who deletes the Job of a script that still runs has it run anew. Of the Jobs that have measured one metric the last ones stay.
package scripts
