/** What is read of a project at most: its files may have been made to hold up the server, or to fill the prompt. */

const KIB = 1024

/** One file, bytes. */
export const MAX_FILE_BYTES = 256 * KIB

/** All files that are read when a conversation is created, bytes. */
export const MAX_TOTAL_BYTES = 4096 * KIB

/** All texts in the system prompt, bytes. */
export const MAX_MEMORY_BYTES = 256 * KIB

/** Files in the system prompt. */
export const MAX_MEMORY_FILES = 50

/** Imports of imports. */
export const MAX_IMPORT_DEPTH = 5

/** The number of entries of each kind: skills, commands and agents. */
export const MAX_ENTRIES = 100

/** Longer descriptions are cut, characters. */
export const MAX_DESCRIPTION_CHARS = 1024

/** Bytes between the two lines `---`. */
export const MAX_FRONTMATTER_BYTES = 8 * KIB

/** Opening brackets in one frontmatter. Each may be a level, and a parser of YAML takes longer for levels than for text. */
export const MAX_FRONTMATTER_BRACKETS = 200

/** The frontmatters of all files of one kind together, milliseconds: YAML can be made to take long. */
export const MAX_PARSE_MS = 3000

/** Directories that one search opens, how deep it goes, and the names that it reads. */
export const MAX_DIRECTORIES = 1000
export const MAX_DEPTH = 6
export const MAX_NAMES = 20_000

/** Entries in the list of what was ignored. */
export const MAX_IGNORED = 100

/** Rules of one kind in all settings files, and what is in one: the gate compares them with every call. */
export const MAX_PROJECT_RULES = 200
export const MAX_RULE_CHARS = 300
export const MAX_RULE_WILDCARDS = 10

/** MCP servers that are listed. */
export const MAX_MCP_SERVERS = 100
