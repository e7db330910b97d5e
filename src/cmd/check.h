/*
 * `check`: one line and an exit status as Nagios, Icinga and Sensu take them from plugins.
 */
#ifndef CMD_CHECK_H
#define CMD_CHECK_H

/* Says that nothing is known, and why, in that line. The exit status. */
int check_tell_unknown(const char *text);

#endif
