/*
 * What redlock --version prints: the version, alone in its line as scripts read it, and
 * then which libraries are in use and how the program was built. There is no date and no
 * path of the build in it, so that two builds of one source are equal.
 */
#ifndef CMD_VERSION_H
#define CMD_VERSION_H

int cmd_version(void);

#endif
