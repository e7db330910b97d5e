# shellcheck shell=bash
# Fresh and minimal systems of Debian, which have apt and git and nothing else.
#
#	release=trixie
#	. test/lab/debian/system.bash		# sets base, a folder that keeps what was downloaded
#	prepare					# or dies, if there cannot be any
#	tree=...
#	unpack					# a new system there, with two clones of this
#	furnish; inside root scripts/package	# in namespaces of the caller's own
#
# They have mounts and processes of their own, which are gone when the caller ends:
# what a container has at least, /proc, a few devices, an empty /run.

die() {
	local name=${0%/*}
	echo "${name##*/}: $*" >&2
	exit 1
}

case ${release-} in
'' | *[!a-z]*) die "RELEASE is trixie, bookworm, sid or another of Debian's, not ${release-}" ;;
esac
base=$PWD/build/debian
packages=$base/packages-$release
tree= # of the caller

# isolated COMMAND...: it has the namespaces, and all that it leaves running ends with it.
isolated() {
	unshare --mount --pid --ipc --uts --fork --kill-child "$@"
}

# furnish: gives $tree what a kernel and a container's runtime add to a system's files.
furnish() {
	local device
	mount --make-rprivate / &&
		mount --bind "$tree" "$tree" &&
		mount -t tmpfs -o mode=755 none "$tree/dev" &&
		mkdir "$tree/dev/pts" &&
		mount -t devpts -o newinstance,ptmxmode=666,gid=5,mode=620 none "$tree/dev/pts" || return
	for device in null zero full random urandom tty; do
		touch "$tree/dev/$device" && mount --bind "/dev/$device" "$tree/dev/$device" || return
	done
	ln -s pts/ptmx "$tree/dev/ptmx"
	ln -s /proc/self/fd "$tree/dev/fd"
	mount -t proc none "$tree/proc" &&
		mount -t tmpfs -o mode=755 none "$tree/run" &&
		mount --bind "$packages" "$tree/var/cache/apt/archives"
}

# inside WHO COMMAND...: as root, or as the ordinary user, in this one's clone. The tree is
# the root of a mount namespace: in a chroot nobody may have a user namespace.
inside() {
	local who=$1 as=() home=/root
	shift
	[ "$who" = root ] || as=(setpriv --reuid 1000 --regid 1000 --clear-groups) home=/home/user
	# shellcheck disable=SC2016 # for the shell inside
	unshare --mount sh -c 'cd "$0" && pivot_root . . && umount -l . && exec "$@"' "$tree" \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME="$home" ${JOBS:+JOBS="$JOBS"} "${as[@]}" \
		sh -c 'cd "$HOME/redlock" && exec "$@"' - "$@" </dev/null
}

# mirror: where this machine has Debian from.
mirror() {
	local url
	# shellcheck disable=SC2016 # apt's own variables
	url=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
		'Label: Debian' 'Created-By: Packages' 2>/dev/null | head -n 1)}
	echo "${url%/}"
}

# The first thing: without packages nothing here can be done.
reachable() {
	local file reason
	file=$(mktemp -d) || return
	reason=$(timeout 8 /usr/lib/apt/apt-helper -o Acquire::http::Timeout=5 -o Acquire::https::Timeout=5 \
		-o Acquire::Retries=0 -o APT::Sandbox::User=root \
		download-file "$1/dists/$release/InRelease" "$file/InRelease" 2>&1)
	case $? in
	0) reason= ;;
	124) reason='no answer within 8 s' ;;
	*) reason=$(sed -n 's/^[EW]: //p' <<<"$reason" | head -n 1) ;;
	esac
	rm -r "$file"
	[ -z "$reason" ] || die "$release cannot be had, is there a network? ${reason:-apt-helper failed}"
}

# bootstrap: apt, git, umount, and what these cannot be without.
bootstrap() {
	# the network may be bad for a while. sid's list is good for a week only, and a mirror
	# may be older; that it is Debian's own is seen from its signature
	mmdebstrap --quiet --variant=apt --include=git,mount --aptopt='Acquire::Retries "3"' \
		--aptopt='Acquire::Check-Valid-Until "false"' "$release" "$base/$release.new.tar" "$(mirror)" &&
		mv "$base/$release.new.tar" "$base/$release.tar"
}

# unpack: the system in $tree, two clones, and a user.
unpack() {
	local home
	rm -rf --one-file-system "$tree" && mkdir -p "$tree" &&
		tar -C "$tree" -xpf "$base/$release.tar" || return
	echo 'user:x:1000:1000::/home/user:/bin/sh' >>"$tree/etc/passwd"
	echo 'user:x:1000:' >>"$tree/etc/group"
	echo '127.0.0.1 localhost' >"$tree/etc/hosts"
	cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
	mkdir "$tree/home/user"
	for home in root home/user; do
		git clone -q --no-local . "$tree/$home/redlock" || return
	done
	chown -R 1000:1000 "$tree/home/user"
}

# prepare: looks whether there can be a new system, and gets its files if need be.
prepare() {
	[ "$(id -u)" -eq 0 ] || die 'must be root, to mount'
	command -v mmdebstrap >/dev/null || die 'mmdebstrap is missing: apt-get install mmdebstrap'
	[ -n "$(mirror)" ] || die 'where is Debian? apt-get update, or MIRROR=URL'
	reachable "$(mirror)"
	[ -z "$(git status --porcelain)" ] || echo 'what is not committed is not tried'
	mkdir -p "$packages/partial"
	if [ ! -e "$base/$release.tar" ]; then
		bootstrap || die "$release cannot be bootstrapped"
	fi
}
