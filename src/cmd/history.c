#include "cmd/json.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/text.h"
#include "settings/command.h"

static int show(struct history *history, const struct settings *settings)
{
	struct buffer text = {0};
	struct error error;
	int status, shown;

	status = history_read(history, &error) == 0 ? 0 : error.code;
	if (settings->format == FORMAT_JSON)
		json_history(&text, history);
	else
		text_history(&text, history);
	shown = status == 0 ? cmd_show(text.data, text.length) : 0;
	buffer_release(&text);
	if (status == 0)
		return shown;
	log_error("%s: %s", settings->key, error.text);
	return status;
}

int cmd_history(struct settings *settings)
{
	struct quorum quorum;
	struct history history;
	int status = cmd_open_quorum(&quorum, settings);

	if (status != 0)
		return status;
	history_init(&history, &quorum, settings->key);
	status = show(&history, settings);
	history_release(&history);
	quorum_release(&quorum);
	return status;
}
