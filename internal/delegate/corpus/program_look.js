{
  const all = [context].flat(), size = all.reduce((n, t) => n + t.length, 0);
  if (size <= PLAIN) {
    const whole = all.length > 1 ? join(all.map(t => text`${t.name}:\n\n${t}`), '\n\n') : all[0];
    answer(await ask(QUESTION, whole, {model: 'main'}));
  } else {
    print('context is ' + (all.length > 1 ? 'a list of ' + all.length + ' Texts' : 'a Text') + ' of ' + size + ' characters:');
    for (const t of all.slice(0, 20)) print('- ' + t.name + ', ' + t.length + ' characters, begins with:', JSON.stringify(t.slice(0, 120)));
    if (all.length > 20) print('and ' + (all.length - 20) + ' more');
  }
}
