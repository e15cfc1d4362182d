function found = read_problem(path)
  % Read a problem as text, in MATLAB or Octave: texts and arrays by key.
  % Keys with a dot become found.factor_0, found.formulation_p, and so on.
  % found.kernels is a cell array of matrices.
  file = fopen(path, 'r');
  assert(strcmp(strtrim(fgetl(file)), 'mklopt-problem 1'));
  found.kernels = {};
  while true
    words = strsplit(strtrim(fgetl(file)), ' ');
    if strcmp(words{1}, 'end'), break; end
    key = strrep(words{2}, '.', '_');
    if strcmp(words{1}, 'text')
      found.(key) = words{3};
      continue
    end
    rows = str2double(words{3}); columns = str2double(words{4});
    table = fscanf(file, '%f', [columns, rows])';
    fgetl(file);
    found.(key) = table;
    if strncmp(key, 'factor_', 7)
      found.kernels{end + 1} = table * table';
    elseif strncmp(key, 'triangle_', 9)
      n = numel(found.y);
      K = zeros(n);
      K(tril(true(n))) = table;
      found.kernels{end + 1} = K + tril(K, -1)';
    end
  end
  fclose(file);
end
