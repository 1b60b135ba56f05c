/** Which files commands other than git and searches reach: rules about it in words, each with commands that show it. */
import { expect, test } from 'vitest'
import type { Given, Row } from './decisions.ts'
import { decideCommand, decided } from './decisions.ts'
import { useProjects } from './real-project.ts'

const bypass = (...deny: string[]): Given => ({ mode: 'bypass', deny })

const ROWS: readonly (readonly [...Row, given: Given])[] = [
  [
    'a directory is copied with what is below it, if an option says so, and its target is not read',
    `
    ? cp -r . /tmp/x
    ? cp -vr . /tmp/x
    ? cp -a ./ ../x
    ? cp --recursive . ../x
    ? cp --archive . ../x
    . cp . /tmp/x
    . cp -v . /tmp/x
    . cp --verbose . /tmp/x
    . cp -r src .
    . cp -r src lib
    ? cp -r . .
    ? cp -r -t /tmp/x .
    ? cp -rt /tmp/x .
    ? cp -r --target-directory=/tmp/x .
    . cp -r x-t .
    ? mv . /tmp/x
    . mv ../x .
    ? mv -t ../x .
    ? mv -ft ../x .
    ? rsync . host:x
    . rsync host:x .
    ? scp -r . host:x
    . scp . host:x
    x cp .env x
    x cp x .env
    `,
    bypass('Read(./.env)'),
  ],
  [
    'an archive holds what is below its directories',
    `
    ? tar cf x .
    ? tar -czf x .
    ? tar --create --file x .
    ? zip -r x .
    ? 7z a x .
    ? cpio -o
    ? pax -w .
    . tar cf x src
    ? tar cf x -C .. y
    ? tar -cC .. -f x y
    ? tar cf x -T list
    ? tar cf x -I y src
    ? zip x -@
    ? zip x.zip -r .
    ? zip env .
    ? pax -rw . x
    ? pax -r -w . x
    ? tar xcf y .
    ? cpio -pd x
    ? cpio -odv
    ? cpio --create
    ? tar cfx y .
    ? tar -f x -c .
    ? tar --exclude=x -cf y .
    ? tar -x -c .
    ? tar rf x .
    ? tar uf x .
    ? tar Af x .
    ? tar -f x -r .
    ? tar --append -f x .
    ? tar --up -f x .
    ? tar --catenate -f x .
    ? tar --concatenate -f x .
    ? bsdtar cf x .
    ? gtar cf x .
    ? star cf x .
    ? 7za a x .
    ? 7z -y a x .
    ? 7z ex .
    ? 7z xa .
    . unzip .
    . unzip -o x
    . pax -r .
    . cpio -i
    . cpio --extract
    . tar -f x -x
    . tar --ge -f x
    . tar --exclude=x -xf y
    . tar -xf y --strip-components=1 --unlink-first
    . tar xf x y-c
    ? tar cf x --directory=.. y
    ? tar cf x --files-from=list
    ? tar cf x --use-compress-program=y src
    ? tar cf x --to-command=y src
    . tar cf x src-C
    . tar cf x --x--directory
    . tar xf x
    . tar -xf x
    . tar zxf x
    . tar -zxf x
    . tar --extract -f x
    . tar --get -f x
    . 7z x y
    . 7z e y
    . tar tf x
    x tar cf x .env
    x tar xf x .env
    `,
    bypass('Read(./.env)'),
  ],
  [
    'what is taken out of an archive may change any file',
    `
    ? tar xf x
    ? tar -xf x
    ? tar zxf x
    ? tar -zxf x
    ? tar --extract -f x
    ? tar --get -f x
    ? 7z x y
    ? 7z e y
    ? cpio -i
    ? cpio -pd x
    ? cpio --extract
    ? cpio --pass-through x
    . cpio -o
    . cpio x-i
    ? pax -r
    ? pax -rw x y
    . pax -w x
    . pax x-r
    ? unzip x
    ? unzip -o x
    . zip x y
    ? tar -f x -x
    ? tar --file=x -v -x
    ? tar --file=x --extract
    . tar cf x x-x
    . tar cfx y
    . tar -fx y
    . 7z a x
    . 7z ex y
    ? tar cf x -C .. y
    . tar cf x .
    . tar tf x
    . tar czf x src
    . tar --x-x -f y
    . zip -r x .
    . cp -r src lib
    . cp -r . lib
    ? cp -r src .
    ? mv . x
    . rsync . x
    ? rsync x .
    . cp -rt x .
    `,
    bypass('Edit(./.env)'),
  ],
  [
    'a container reaches all files with a mount',
    `
    ? docker run -v .:/x y
    ? docker run -itv .:/x y
    ? docker run --volume .:/x y
    ? docker run --volumes-from x y
    ? docker run --mount type=bind,src=.,dst=/x y
    ? docker cp . x:/y
    ? podman run -v x:/x y
    ? nerdctl run -v x:/x y
    ? kubectl cp . x:/y
    ? oc cp . x:/y
    . docker run x y
    . docker ps --v
    . docker build .
    . docker run x-v
    . docker x--mount
    . docker xcp
    . docker cpx
    . other run -v .:/x y
    `,
    bypass('Read(./.env)'),
  ],
  [
    'what changes all below a directory changes the files in it',
    `
    ? rm -r .
    ? rm -fr .
    ? rm -rf .
    ? rm --recursive .
    ? chmod -R x .
    ? chown -R x .
    ? chgrp -R x .
    ? shred -r .
    . rm .
    . rm -f .
    . rm --force .
    . rm x-r .
    . rm -r src
    . touch -r .
    ? find . -delete
    ? find . -fprint x
    ? find . -fls x
    ? find . -files0-from x
    ? find -delete
    . find . -x-delete
    . find . -name x
    . fd . -delete
    x rm .env
    `,
    bypass('Edit(./.env)'),
  ],
  [
    'a program takes the names that it shows from a file, or writes them to one',
    `
    x du --files0-from=.env
    x du -s --files0-from .env
    x tree --fromfile .env
    x tree --fromtabfile .env
    x tree --gitfile=.env
    x tree --infofile=.env
    x tree -o .env
    x tree -ao .env
    . du -sh .env
    . du --max-depth=1
    . tree -a .env
    `,
    bypass('Read(./.env)'),
  ],
  [
    'a program that shows names shows that a denied directory is there only if it lists it',
    `
    x ls src
    x ls src/
    x find src
    x tree src
    x du src
    x stat src
    x fd x src
    . ls src/a
    . ls .
    . test -f src/a
    . [ -f src/a ]
    . basename src/a
    . dirname src/a
    . readlink src/a
    . realpath src/a
    x cat src/a
    x wc src/a
    x ls src/sub
    . ls x
    . declare x=src/a
    . export x=src/a
    . typeset x=src/a
    . local x=src/a
    . readonly x=src/a
    . unset src/a
    x declares src/a
    `,
    bypass('Read(src)'),
  ],
  [
    'a link gives what is below its target another name, and its target starts where it is',
    `
    ? ln -s . x
    ? ln -s $PWD x
    x ln .env x
    x ln -s .env x
    x ln -s x .env
    x ln -s ../.env src/x
    x ln -s ../.env src
    x ln -s ../../.env b src/lib
    ? ln -s .. src/x
    ? ln -s .. src
    . ln -s src x
    . ln -s ../x src
    ? ln -s /proc x
    ? ln -s /dev x
    ? ln -s /dev/ x
    ? ln -s //proc/self x
    . ln -s /process x
    . ln -s /x/proc x
    . ln -s x/proc/y z
    ? ln -s "$x" y
    `,
    bypass('Read(./.env)'),
  ],
  [
    'the files of `sort` may be in a list',
    `
    ? sort --files0-from=x
    ? sort --fil x
    . sort --field x
    . sort x--files0-from=x
    . cat --files0-from=x
    x sort .env
    `,
    bypass('Read(./.env)'),
  ],
  [
    'a comparison of directories reads all below them',
    `
    ? diff -r . ../x
    ? diff . ../x
    ? diff src lib
    x diff .env x
    . cmp . x
    `,
    bypass('Read(./.env)'),
  ],
  [
    'what follows a mark or the letter of an option may be a path',
    `
    x curl -d @.env x
    x curl x=.env
    x curl x:.env
    x curl x,.env
    x x --file=.env
    x x -f.env
    x x -xf/work/project/.env
    x x -xzf/work/project/.env
    x x --x/work/project/.env
    x x a=b=c=.env
    . x a=b=c=d=e=.env
    ? dd if=~/../../work/project/.env
    x x -~/../../work/project/.env
    . x -f
    . x -
    . x --.env
    . x .envx
    ? x -f"$y"
    ? x -"$y"
    . x --"$y"
    ? x --f="$y"
    `,
    bypass('Read(./.env)'),
  ],
  [
    'a tilde is the home directory where it stands alone or before a slash',
    `
    x x --if=~/b
    x x --if=~
    x cat ~
    `,
    bypass('Read(~)'),
  ],
  [
    'a tilde elsewhere is one of a name',
    `
    . x --if="~x"
    . x --if=a~/b
    `,
    bypass('Read(//home/userx)', 'Read(//home/user~/b)'),
  ],
  [
    'a name in a script may be a file, if a dot, a slash or a tilde is in it',
    `
    ? node -e "read('.env')"
    ? node -e "read('.env:')"
    ? node -e "read('.env::')"
    ? node -e "read('@.env')"
    ? node -e "read('./.env')"
    ? node -e "read('~/../../work/project/.env')"
    ? node -e 'read(".env")'
    ? node -e "read[.env]"
    ? node -e "a;.env"
    ? node -e "a|.env"
    ? node -e "a&.env"
    ? node -e "a<.env"
    ? node -e "{.env}"
    ? node -e 'a $.env'
    ? node -e 'a\`.env\`'
    ? node -e "$x .env"
    . node -e "read('.e:nv')"
    . node -e "read('.e@nv')"
    . node -e "read('x.env')"
    . node -e "read('env')"
    . echo "read('.env')"
    . cp "read('.env')" x
    `,
    bypass('Read(./.env)'),
  ],
  ['a name in a script without one of them is none', '. node -e "read(\'secret\')"', bypass('Read(secret)')],
  [
    'a rule for all files stops each command that reads or writes one, and leaves the others',
    `
    x cat a
    x ls
    x cat < a
    x echo a > b
    . echo a
    . true
    . npm test
    . cp a b
    . basename a
    `,
    bypass('Read'),
  ],
  [
    'a rule for all changes stops each redirection that writes, and leaves what reads',
    `
    x echo a > b
    x echo a >> b
    . cat < a
    . cat a
    . echo a > /dev/null
    . npm test
    `,
    bypass('Edit'),
  ],
  [
    'a rule about edits leaves what only reads',
    `
    x touch .env
    x echo a > .env
    . cat .env
    . cat < .env
    . grep x .env
    . find . -name .env
    . npm test
    x cp .env x
    `,
    bypass('Edit(./.env)'),
  ],
  [
    'a rule about what is fetched is about no command, and others are about nothing that is fetched',
    `
    . eval "$x"
    . curl https://example.org
    . cat .env
    `,
    bypass('WebFetch(domain:example.org)'),
  ],
]

test.each(ROWS)('%s', (_, lines, given) => expect(decided(lines, (line) => decideCommand(line, given))).toBe(lines))

test('what a link leads to is reached, too', () => {
  const given: Given = { ...bypass('Read(./.env)'), links: { '/work/project/src/link': '/work/project' } }
  const lines = `
    ? cp -r src/link x
    . cp -r src/other x
    x cat src/link/.env
    . cat src/other/.env
    `
  expect(decided(lines, (line) => decideCommand(line, given))).toBe(lines)
})

const FILES = ['.env', 'src/a.ts', 'secret/key']
const make = useProjects()
const project = await make('commands', Object.fromEntries(FILES.map((file) => [file, 'x'])))

const ON_DISK: readonly (readonly [...Row, deny: string])[] = [
  [
    'a directory with a denied file is not copied, and another one is',
    `
    ? cp -r . ../x
    . cp -r src ../x
    ? tar cf x .
    . tar cf x src
    ? diff . ../x
    . diff src ../x
    x cat .env
    . cat src/a.ts
    ? cat $x
    . cat *
    ? cat .e*
    . cat src/*
    ? node -e "open('.env')"
    . node -e "open('src/a.ts')"
    `,
    'Read(./.env)',
  ],
  [
    'the same for a denied directory',
    `
    ? cp -r . ../x
    . cp -r src ../x
    x cp -r secret ../x
    x cat secret/key
    ? cat $x
    . cat src/*
    x cat secret/*
    `,
    'Read(./secret/**)',
  ],
  [
    'a file that is not there is read by no variable and no `*`, unless another command of the line brings it',
    `
    . cat $x
    . cat *
    . cp -r . ../x
    . tar cf x .
    x cat .gone
    . ls; cat $x
    . npm test; cat $x
    . cp $x y
    ? cp x y; cat $x
    ? cp $x y; mv z y
    ? cp x y; cp -r . ../x
    ? git checkout x; cat $x
    . git status; cat $x
    . tar xf x; cat *
    ? tar xf x; cat .*
    ? unzip x; cat $x
    ? "./$y"; cat $x
    ? bash x; cat $x
    `,
    'Read(./.gone)',
  ],
  [
    'but it is changed',
    `
    ? touch $x
    ? rm .*
    . rm *
    . tar xf x
    ? cp x y; tar xf x
    . tar cf x .
    `,
    'Edit(./.gone)',
  ],
  [
    'a file outside of the workdir may be there for the commands only',
    `
    ? cat $x
    ? cat ~/*
    ? cp -r ~ x
    x cat ~/gone
    . cat *
    `,
    'Read(~/gone)',
  ],
]

test.each(ON_DISK)('on a disk, %s', (_, lines, deny) =>
  expect(decided(lines, (line) => project.decide(line, [deny]))).toBe(lines),
)
