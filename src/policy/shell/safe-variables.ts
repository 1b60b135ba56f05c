/** The only file that says which variables a command line may set without changing what its commands do. */

/** They change how a program writes its output or how much it tells, never which program or file it uses. */
const SAFE = new Set([
  'CI',
  'COLUMNS',
  'DEBUG',
  'FORCE_COLOR',
  'GOARCH',
  'GOOS',
  'LANG',
  'LINES',
  'NODE_ENV',
  'NO_COLOR',
  'PYTHONDONTWRITEBYTECODE',
  'PYTHONHASHSEED',
  'PYTHONUNBUFFERED',
  'RUST_BACKTRACE',
  'RUST_LOG',
  'TERM',
  'TZ',
])

/** Variables of the operating system, of bash and of programs have capitals or underscores in their names. */
export const isSafeVariable = (name: string): boolean =>
  SAFE.has(name) || /^LC_[A-Z]+$/.test(name) || (/^[a-z][a-z0-9]*$/.test(name) && name !== 'histchars')

/** Names that scripts give to their variables. Few programs read such a name, and most of those for a proxy. */
export const isOwnName = (name: string): boolean => /^[a-z][a-z0-9_]*$/.test(name) && !/^histchars$|_proxy$/.test(name)

/** The charset in which bash reads lines, also later ones. */
export const isLocale = (name: string): boolean => /^(LANG|LC_[A-Z]+)$/.test(name)

/**
 * Returns false for charsets such as GBK: a backslash may be the second half of a character, and then quotes nothing.
 */
export const isSafeLocale = (value: string | undefined): boolean =>
  value !== undefined && /^(C|POSIX|[\w@]+\.utf-?8)?$/i.test(value)

/** They decide which files a command line means: where `~`, `cd` and git lead, what `*` finds, what a search looks into. */
export const decidesFiles = (name: string): boolean =>
  /^(HOME|PWD|OLDPWD|CDPATH|DIRSTACK|GLOBIGNORE|RIPGREP_CONFIG_PATH|POSIXLY_CORRECT)$/.test(name) ||
  /^GIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|(ALTERNATE_)?OBJECT_DIRECTOR|ICASE_PATHSPECS|CONFIG)/.test(name)
