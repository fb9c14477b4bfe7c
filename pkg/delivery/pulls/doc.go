// Package pulls opens pull requests that promote a version to an environment, and keeps them as they should be.
//
// What was done before is read from the forge each time, so that whoever asks may ask as often as they like, and may forget that they did: the branch of
// a version is always called the same, one that is there is gone on with, and what a person has merged or closed stays so.
//
// Repositories and forges are strangers. Calls keep to the policy for addresses that users name, answers are bounded, and of what a forge says only
// numbers and states are taken over: the address of a pull request is made of that of the repository.
package pulls
