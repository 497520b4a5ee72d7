# Prints what a machine has, one fact a line. It changes nothing and reaches nothing.
for t in $1; do command -v "$t" >/dev/null 2>&1 && echo "has $t"; done
for t in $2; do
	command -v "$t" >/dev/null 2>&1 || continue
	case $t in go) flag=version ;; java) flag=-version ;; *) flag=--version ;; esac
	(v=$("$t" $flag 2>&1 </dev/null | head -n 1); echo "version $t $v") &
done
echo "cores $(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
echo "memory $(awk '/^MemTotal/ {print $2}' /proc/meminfo 2>/dev/null)"
echo "limit $(cat /sys/fs/cgroup/memory.max 2>/dev/null)"
wait
