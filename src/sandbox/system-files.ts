/** The operating system's files that programs need, for a sandbox that starts with an empty root. */
import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

export const SYSTEM_DIRECTORIES = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

/** No passwords, private keys or services. */
export const SYSTEM_FILES = `
  alternatives bash.bashrc bash_completion bash_completion.d ca-certificates ca-certificates.conf
  crypto-policies debian_version default/locale environment fonts gai.conf gitconfig group host.conf
  hostname hosts inputrc ld.so.cache ld.so.conf ld.so.conf.d locale.alias localtime login.defs magic
  magic.mime mime.types nanorc networks nsswitch.conf os-release passwd perl pki/tls/certs pki/ca-
  trust profile profile.d protocols rpc resolv.conf services shells skel ssl/certs ssl/openssl.cnf
  terminfo timezone vim wgetrc xdg
`
  .trim()
  .split(/\s+/)
  .map((name) => `/etc/${name}`)

/** Programs read their own settings there, under names with a version. */
const SYSTEM_FILE_FAMILIES = /^(java|openjdk|python|php|node|maven|gradle|llvm|clang|chromium)/

/** Returns an empty root with the system's files, read-only. Links are recreated, because their targets are inside. */
export function systemMounts(): string[] {
  return ['--tmpfs', '/', ...[...SYSTEM_DIRECTORIES, ...SYSTEM_FILES, ...familiesInEtc()].flatMap(mountOf)]
}

function familiesInEtc(): string[] {
  return readdirSync('/etc')
    .filter((name) => SYSTEM_FILE_FAMILIES.test(name))
    .map((name) => join('/etc', name))
}

function mountOf(path: string): string[] {
  if (!existsSync(path)) return []
  // `/etc/resolv.conf` may point outside: bwrap binds a link's target.
  const isLink = SYSTEM_DIRECTORIES.includes(path) && lstatSync(path).isSymbolicLink()
  return isLink ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}
