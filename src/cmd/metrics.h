/*
 * What `list`, `doctor` and their --format prometheus tell Prometheus: its text format, which
 * is OpenMetrics, too, on the standard output or in the file of --output (replace.h).
 *
 *	struct metrics metrics = {0};
 *	metrics_add_listed(&metrics, settings, &listed);	for each
 *	status = metrics_tell_list(&metrics, settings, true);
 *	metrics_release(&metrics);
 *
 * All series have the label set if --set is given: node_exporter takes no series from two
 * files, and none whose help differs. So no metric of `list` is one of `doctor`.
 *
 * If servers cannot be reached, or the settings are wrong, the file says that, and no more:
 * it would be taken for new if it stayed as it is.
 */
#ifndef CMD_METRICS_H
#define CMD_METRICS_H

#include "settings/settings.h"
#include "show/batch.h"
#include "show/doctor.h"

/* The series of a KEY, or of a server. */
struct metrics_row;

struct metrics {
	struct metrics_row *rows; /* owned */
	size_t count, capacity;
};

void metrics_release(struct metrics *metrics);

void metrics_add_listed(struct metrics *metrics,
			const struct settings *settings,
			const struct listed *listed);

/* Each: 0, or an exit status after an error that was printed. well: a quorum has
 * answered. */
int metrics_tell_list(struct metrics *metrics, const struct settings *settings,
		      bool well);
int metrics_tell_doctor(const struct doctor *doctor,
			const struct settings *settings);

/* Nothing is known: no server was asked. doctor: it is not `list`. */
int metrics_tell_nothing(const struct settings *settings, bool doctor);

#endif
