/** What a tool tells the permission gate about one call: what it would read, change, run or fetch. */

/**
 * `none`: nothing outside the conversation's own log. `read` and `edit`: files; a relative path starts at the workdir.
 * `isDeep`: also everything below a directory. `isWhole`: it writes whole files, as the tool `Write` does.
 * `command`: a bash command line; `cwd` is where the shell stands, undefined if that is not known. `evaluates`: variables of
 * the shell whose values it evaluates when they are assigned; `path`: where it looks for programs; null if that is not known.
 * `fetch`: a URL, undefined for a search. `other`: anything; rules can name the tool only. `mcpServers`: it is a call to
 * these MCP servers, and rules for one of them hold for it, too. `runsCommands`: it may run command lines besides, and asks the
 * gate about each of them.
 */
export type ToolAccess =
  | { readonly kind: 'none'; readonly mcpServers?: readonly string[]; readonly runsCommands?: boolean }
  | {
      readonly kind: 'read'
      readonly paths: readonly string[]
      readonly isDeep?: boolean
      readonly runsCommands?: boolean
    }
  | { readonly kind: 'edit'; readonly paths: readonly string[]; readonly isWhole?: boolean }
  | {
      readonly kind: 'command'
      readonly command: string
      readonly cwd: string | undefined
      readonly evaluates?: readonly string[]
      readonly path?: string | null
    }
  | { readonly kind: 'fetch'; readonly url: string | undefined }
  | { readonly kind: 'other'; readonly mcpServers?: readonly string[] }
