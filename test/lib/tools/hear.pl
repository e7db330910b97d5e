# hear.pl FILE UNTIL SIGNAL[,SIGNAL...] [PROCESSES]: a COMMAND that tells of the signals it gets.
#
# Each of PROCESSES (1) writes a line "ready PID" to FILE, and a line "SIGNAL PID" for each that comes.
# All end, with status 0, once UNTIL exists.
use strict;
use warnings;

my ($file, $until, $signals, $processes) = @ARGV;

open my $out, '>>', $file or die "$file: $!\n";

sub tell_of {
	syswrite $out, "$_[0] $$\n";
}

for my $signal (split /,/, $signals) {
	$SIG{$signal} = sub { tell_of($signal) };
}
for (2 .. $processes // 1) {
	last if !fork;
}
tell_of('ready');
select undef, undef, undef, 0.02 until -e $until;
1 while wait > 0;
