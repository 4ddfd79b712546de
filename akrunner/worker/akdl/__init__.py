"""The names of Alink's `akdl` package that its users' scripts import, on top of akrunner's own worker. A script that ships the real
package in its user files gets that one."""
