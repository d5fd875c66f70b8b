"""The environments of usual desktops: what is set there without anybody having thought of a secret."""

GNOME = """
USER=ada
LOGNAME=ada
HOME=/home/ada
SHELL=/usr/bin/zsh
PWD=/home/ada/work/agent
OLDPWD=/home/ada/work
PATH=/home/ada/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin
LANG=en_GB.UTF-8
LC_TIME=de_DE.UTF-8
TERM=xterm-256color
COLORTERM=truecolor
DESKTOP_SESSION=ubuntu
GDMSESSION=ubuntu
XDG_SESSION_ID=2
XDG_SESSION_TYPE=wayland
XDG_SESSION_CLASS=user
XDG_SESSION_DESKTOP=ubuntu
XDG_CURRENT_DESKTOP=ubuntu:GNOME
XDG_RUNTIME_DIR=/run/user/1000
XDG_DATA_DIRS=/usr/share/ubuntu:/usr/share/gnome:/usr/local/share/:/usr/share/
XDG_CONFIG_DIRS=/etc/xdg/xdg-ubuntu:/etc/xdg
XDG_MENU_PREFIX=gnome-
GNOME_DESKTOP_SESSION_ID=this-is-deprecated
GNOME_SHELL_SESSION_MODE=ubuntu
GNOME_SETUP_DISPLAY=:1
GNOME_KEYRING_CONTROL=/run/user/1000/keyring
GNOME_TERMINAL_SCREEN=/org/gnome/Terminal/screen/3f2c9a1e_7b5d_4c38_9d1a_0e6f4b2a8c57
GNOME_TERMINAL_SERVICE=:1.113
GTK_MODULES=gail:atk-bridge
QT_ACCESSIBILITY=1
QT_IM_MODULE=ibus
XMODIFIERS=@im=ibus
DISPLAY=:0
WAYLAND_DISPLAY=wayland-0
XAUTHORITY=/run/user/1000/.mutter-Xwaylandauth.4QJ7X2
SSH_AUTH_SOCK=/run/user/1000/keyring/ssh
SSH_AGENT_LAUNCHER=gnome-keyring
GPG_AGENT_INFO=/run/user/1000/gnupg/S.gpg-agent:0:1
DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus
SESSION_MANAGER=local/lovelace:@/tmp/.ICE-unix/2210,unix/lovelace:/tmp/.ICE-unix/2210
SYSTEMD_EXEC_PID=2231
INVOCATION_ID=5d2f0c4f6f5b4f0f9d6a8c1b2e3f4a5b
JOURNAL_STREAM=8:31337
MANAGERPID=2032
IM_CONFIG_PHASE=1
VTE_VERSION=7600
WINDOWPATH=2
LESSOPEN=| /usr/bin/lesspipe %s
LESSCLOSE=/usr/bin/lesspipe %s %s
LS_COLORS=rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35:do=01;35:*.tar=01;31:*.tgz=01;31
HISTCONTROL=ignoreboth
SHLVL=2
_=/usr/bin/env
"""

KDE = """
KDE_FULL_SESSION=true
KDE_SESSION_VERSION=6
KDE_SESSION_UID=1000
KDE_APPLICATIONS_AS_SCOPE=1
KONSOLE_VERSION=240800
KONSOLE_DBUS_SERVICE=:1.402
KONSOLE_DBUS_SESSION=/Sessions/1
KONSOLE_DBUS_WINDOW=/Windows/1
PROFILEHOME=
SHELL_SESSION_ID=0c3b1b0a6d6f4f9d8f3a2b1c0d9e8f7a
SSH_ASKPASS=/usr/bin/ksshaskpass
SSH_ASKPASS_REQUIRE=prefer
SUDO_ASKPASS=/usr/bin/ksshaskpass
GIT_ASKPASS=/usr/bin/ksshaskpass
GTK_RC_FILES=/etc/gtk/gtkrc:/home/ada/.gtkrc:/home/ada/.config/gtkrc
XCURSOR_THEME=breeze_cursors
XKB_DEFAULT_LAYOUT=deutschland-qwertz
PAM_KWALLET5_LOGIN=/run/user/1000/kwallet5.socket
"""

MACOS = """
__CFBundleIdentifier=com.apple.Terminal
__CF_USER_TEXT_ENCODING=0x1F5:0x0:0x3
TERM_PROGRAM=Apple_Terminal
TERM_PROGRAM_VERSION=455.1
TERM_SESSION_ID=8D0C6C0E-1F0E-4B9B-9B6D-1B9D7F2A3C4D
ITERM_SESSION_ID=w0t0p0:8D0C6C0E-1F0E-4B9B-9B6D-1B9D7F2A3C4D
SECURITYSESSIONID=186a6
TMPDIR=/var/folders/9x/4q7v0yl12bs3c5k8d6fghj0m0000gn/T/
COMMAND_MODE=unix2003
XPC_FLAGS=0x0
XPC_SERVICE_NAME=0
HOMEBREW_PREFIX=/opt/homebrew
HOMEBREW_CELLAR=/opt/homebrew/Cellar
HOMEBREW_REPOSITORY=/opt/homebrew
INFOPATH=/opt/homebrew/share/info:
LC_TERMINAL=iTerm2
COLORFGBG=15;0
Apple_PubSub_Socket_Render=/private/tmp/com.apple.launchd.aBcDeFgH12/Render
KEYTIMEOUT=1
"""

WSL = """
WSL_DISTRO_NAME=Ubuntu-24.04
WSL_INTEROP=/run/WSL/8_interop
WSLENV=WT_SESSION:WT_PROFILE_ID:
WT_SESSION=7c9e6679-7425-40de-944b-e07fc1f90ae7
WT_PROFILE_ID={51855cb2-8cce-5362-8f54-464b92b32386}
HOSTTYPE=x86_64
NAME=LAPTOP-7QK2M9PD
PULSE_SERVER=unix:/mnt/wslg/PulseServer
"""

TOOLS = """
EDITOR=vim
PAGER=less
VISUAL=code --wait
TMUX=/tmp/tmux-1000/default,41237,0
TMUX_PANE=%3
STY=3120.pts-1.lovelace
VSCODE_INJECTION=1
VSCODE_GIT_ASKPASS_NODE=/usr/share/code/code
VSCODE_GIT_ASKPASS_MAIN=/usr/share/code/resources/app/extensions/git/dist/askpass-main.js
VSCODE_GIT_ASKPASS_EXTRA_ARGS=
VSCODE_GIT_IPC_HANDLE=/run/user/1000/vscode-git-9c2f1b7d3e.sock
VSCODE_IPC_HOOK_CLI=/run/user/1000/vscode-ipc-2f6d0c84-1d6b-4b4e-8a1c-4c0d9c0f7a11.sock
CHROME_DESKTOP=code.desktop
ORIGINAL_XDG_CURRENT_DESKTOP=ubuntu:GNOME
GIT_AUTHOR_NAME=Ada Lovelace
GIT_AUTHOR_EMAIL=ada@example.com
GIT_COMMITTER_NAME=Ada Lovelace
GIT_COMMITTER_EMAIL=ada@example.com
VIRTUAL_ENV=/home/ada/work/agent/.venv
CONDA_DEFAULT_ENV=base
PYENV_ROOT=/home/ada/.pyenv
NVM_DIR=/home/ada/.nvm
NVM_BIN=/home/ada/.nvm/versions/node/v22.11.0/bin
JAVA_HOME=/usr/lib/jvm/java-21-openjdk-amd64
JAVA_OPTS=-Dsort.key=createdAtTimestamp -Dauth.mode=kerberos-only -Xmx1g
GOPATH=/home/ada/go
CARGO_HOME=/home/ada/.cargo
KUBECONFIG=/home/ada/.kube/config
AWS_PROFILE=production-admin
AWS_DEFAULT_REGION=eu-central-1
AWS_CREDENTIAL_EXPIRATION=2026-11-16T18:00:00Z
AWS_SHARED_CREDENTIALS_FILE=/home/ada/.aws/credentials
GOOGLE_APPLICATION_CREDENTIALS=/home/ada/.config/gcloud/application_default_credentials.json
DOCKER_HOST=unix:///run/user/1000/docker.sock
DOCKER_IMAGE=registry.example.com/agent:2024.11-release@sha256
OLLAMA_HOST=http://127.0.0.1:11434
OPENAI_API_KEY=not-needed
DATABASE_URL=postgresql://postgres:postgres@localhost:5432/postgres
POSTGRES_PASSWORD=postgres
DB_PASS=ada
REDIS_PWD=lovelace
AUTH_PROVIDER=keycloak-internal
SECRET_STORE=vault-production
PASSWORD_MANAGER=bitwarden-cli
PASSWORD_STORE_DIR=/home/ada/.password-store
TOKENIZERS_PARALLELISM=false
MAX_TOKENS=4096
KEYBOARD_LAYOUT=deutschland-qwertz
MONKEY_PATCH=gevent-early
HOTKEY=ctrl+shift+p
COMPASS_THEME=solarized-dark
HOSTNAME=lovelace
NPM_CONFIG_REGISTRY=https://registry.npmjs.org/
SENTRY_ENVIRONMENT=production-eu
HTTPS_PROXY=http://proxy.example.com:3128
NO_PROXY=localhost,127.0.0.1,.example.com
"""


def variables(*tables: str) -> dict[str, str]:
    """The tables as one environment."""
    lines = (line for table in tables for line in table.strip().splitlines())
    return dict(line.split("=", 1) for line in lines)


DESKTOPS = {
    "GNOME": variables(GNOME, TOOLS),
    "KDE": variables(GNOME, KDE, TOOLS),
    "macOS": variables(GNOME, MACOS, TOOLS),
    "WSL": variables(GNOME, WSL, TOOLS),
}
