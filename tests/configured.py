"""Say what has to be done before FOLDER is a build of ROOT by this Meson with these options:

    python3 configured.py ROOT FOLDER MESON-VERSION -Doption=value...

Prints one of: fits, options (some differ), broken (start afresh), foreign (somebody else's folder), none (not there).
"""
import json
import os
import sys

root, folder, meson = sys.argv[1:4]
wanted = dict(argument[2:].split("=", 1) for argument in sys.argv[4:])


def read(name):
    with open(os.path.join(folder, "meson-info", name), encoding="utf-8") as f:
        return json.load(f)


def state():
    if not os.path.isdir(folder) or not os.listdir(folder):
        return "none"
    if not os.path.isdir(os.path.join(folder, "meson-private")):
        return "foreign"
    try:
        info = read("meson-info.json")
        options = {option["name"]: option["value"] for option in read("intro-buildoptions.json")}
    except (OSError, ValueError):
        return "broken"
    if (
        info["error"]
        or info["meson_version"]["full"] != meson
        or os.path.realpath(info["directories"]["source"]) != os.path.realpath(root)
        or os.path.realpath(info["directories"]["build"]) != os.path.realpath(folder)
        or not os.path.exists(os.path.join(folder, "build.ninja"))
    ):
        return "broken"
    for name, value in wanted.items():
        now = options.get(name)
        now = str(now).lower() if isinstance(now, bool) else ",".join(now) if isinstance(now, list) else now
        if now != value:
            return "options"
    return "fits"


print(state())
